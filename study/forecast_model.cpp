#include "tessera/study/forecast_model.hpp"

#include <fmt/format.h>

#include <cmath>

#include "tessera/host/cpu.hpp"

namespace tessera::study {
namespace {

Cost cost_of(const report::HostWay& way) {
  Cost cost{.value = way.seconds(), .block = way.block, .is_dense = way.is_dense};
  for (const auto& [pass, forecast] : way.passes)
    cost.passes.emplace_back(pass, forecast.seconds());
  return cost;
}

}  // namespace

ForecastModel::ForecastModel(const Problem& layer, const host::FoundRates& found)
    : CostModel(layer), found_(found) {}

report::HostPlan ForecastModel::plan(const Form& form) const {
  return plan_on_host(problem(form), form, found_);
}

Cost ForecastModel::sparse(const Form& form) {
  Cost cost = cost_of(plan(form).ways.front());
  const double blocks = blocks_of(layer(), form);
  cost.density = blocks / places_of(layer(), form.block);
  if (form.pattern != nullptr) cost.blocks = std::int64_t(blocks);
  return cost;
}

Cost ForecastModel::dense(std::int64_t batch) {
  Cost cost = cost_of(plan({.block = {1, 1}, .density = 0, .batch = batch}).ways.back());
  cost.kernel = fmt::format("{}, {}", found_.rates.dense_kernel, to_string(layer().data_type));
  return cost;
}

std::vector<Form> ForecastModel::alternatives(const Form& own) const {
  std::vector<Form> forms = {own};
  for (const std::int64_t side : kBlockSides) {
    if (side <= own.block.rows || side % own.block.rows != 0 || side % own.block.cols != 0)
      continue;
    forms.push_back(own);
    forms.back().block = {side, side};
    forms.back().density = blocks_as(layer(), own, {side, side}) / places_of(layer(), {side, side});
  }
  return forms;
}

report::HostPlan plan_on_host(const Problem& layer, const Form& own,
                              const host::FoundRates& found) {
  Problem problem = layer;
  problem.block = own.block;
  return report::plan_on_host(problem, host::read_host_cpu(), found,
                              [&](BlockShape block) { return blocks_as(problem, own, block); });
}

double blocks_as(const Problem& layer, const Form& own, BlockShape block) {
  Form form = own;
  form.block = block;
  if (own.pattern != nullptr || block == own.block) return blocks_of(layer, form);
  const double parts = double(block.area()) / double(own.block.area());
  return places_of(layer, block) * (1 - std::pow(1 - own.density, parts));
}

}  // namespace tessera::study
