#include "tessera/study/target.hpp"

#include "tessera/host/cpu.hpp"
#include "tessera/report/host_plan.hpp"
#include "tessera/study/forecast_model.hpp"
#include "tessera/study/measured_model.hpp"

namespace tessera::study {

std::string Target::words() const { return is_host() ? host::host_cpu_model() : machine->name; }

const host::FoundRates& Target::rates() const {
  if (!*found) *found = host::find_host_rates(report::host_rates_path());
  return **found;
}

Origin Target::origin() const {
  if (!is_host()) return Origin::Planned;
  return measures ? Origin::Measured : Origin::Forecast;
}

std::unique_ptr<CostModel> Target::expected(const Problem& layer) const {
  constexpr double kSpread = 0.03;  // of measured times
  if (measures && is_host()) return seen(layer, kSpread);
  if (is_host()) return std::make_unique<ForecastModel>(layer, rates());
  return std::make_unique<PlannedModel>(layer, *machine, options, relaxes, plan_by);
}

std::unique_ptr<CostModel> Target::seen(const Problem& layer, double spread) const {
  if (!is_host()) return expected(layer);
  return std::make_unique<MeasuredModel>(layer, /*threads=*/0, spread, is_stopped);
}

std::unique_ptr<CostModel> Target::fixed(const Problem& layer) const {
  if (is_host()) return nullptr;
  const planner::StaticOptions with{options.available_memory_proportion};
  return std::make_unique<StaticModel>(layer, *machine, with, patterns);
}

}  // namespace tessera::study
