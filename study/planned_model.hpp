#pragma once

#include <functional>
#include <optional>

#include "tessera/device/machine.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/study/cost_model.hpp"

namespace tessera::study {

// The planner, or a cache in front of it.
using PlanBy = std::function<planner::PlanResult(const Problem&, const device::Machine&,
                                                 const planner::Options&, const PatternStats*)>;

// Modelled cycles of the plans of a layer, always with buckets, whatever the constraints say.
class PlannedModel : public CostModel {
 public:
  // `relaxes`: a form that does not fit is planned with the smallest relaxation that helps
  // (planner::plan_best_effort).
  PlannedModel(const Problem& layer, const device::Machine& machine,
               const planner::Options& options, bool relaxes = false, PlanBy plan_by = {});

  Origin origin() const override { return Origin::Planned; }
  Cost sparse(const Form& form) override;
  Cost dense(std::int64_t batch = 0) override;
  Cost cheapest(const Form& form) override;
  Look look(const Form& form, double limit) override;
  std::optional<std::int64_t> known_reach(const Form& form, double limit) override;
  Cost below(const Form& form, double limit) override;
  double seconds(double cost) const override { return cost / machine_.clock_hz; }

  void begin_at(const Cost& cost) override { like_ = cost.plan; }
  void begin_at(const planner::Plan& plan) { like_ = plan; }

  const device::Machine& machine() const { return machine_; }
  const planner::Options& options() const { return options_; }

 private:
  Cost planned(Cost result, const Problem& asked, const PatternStats* stats);
  Cost whole_or_parts(const Form& form);
  Look look_at_plans(const Problem& asked, Cycles limit) const;
  bool pays_in_parts(Problem asked, Cycles limit) const;

  device::Machine machine_;
  planner::Options options_;
  bool relaxes_;
  PlanBy plan_by_;
  std::optional<planner::Plan> like_;
};

// Returns the cost of a dense plan, which report::dense_baseline() has made.
Cost cost_of(const report::DenseBaseline& dense);

}  // namespace tessera::study
