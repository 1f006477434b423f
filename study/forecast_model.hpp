#pragma once

#include <string>

#include "tessera/host/rates.hpp"
#include "tessera/report/host_plan.hpp"
#include "tessera/study/cost_model.hpp"

namespace tessera::study {

// Seconds that are forecast for all passes on this computer, from the rates `found`.
class ForecastModel : public CostModel {
 public:
  ForecastModel(const Problem& layer, const host::FoundRates& found);

  Origin origin() const override { return Origin::Forecast; }
  Cost sparse(const Form& form) override;
  Cost dense(std::int64_t batch = 0) override;

  // Returns the forms of the same weights: its own blocks and the larger square ones that they
  // divide.
  std::vector<Form> alternatives(const Form& own) const override;

  const host::FoundRates& found() const { return found_; }

 private:
  report::HostPlan plan(const Form& form) const;

  host::FoundRates found_;
};

// Returns the forecast of a layer on this computer in all forms of the same weights
// (report/host_plan.hpp).
report::HostPlan plan_on_host(const Problem& layer, const Form& own, const host::FoundRates& found);

// Returns the number of blocks of a shape that the weights of a form occupy: counted for a pattern,
// expected for a uniform random pattern of the form's blocks.
double blocks_as(const Problem& layer, const Form& own, BlockShape block);

}  // namespace tessera::study
