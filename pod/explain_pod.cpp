#include "tessera/pod/explain_pod.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/json/value.hpp"
#include "tessera/pod/internal/pod_cost.hpp"

namespace tessera::pod {
namespace {

using Json = json::Value;

constexpr double kMicroseconds = 1e6;

GridPins pins_of(GridKind kind, std::int64_t devices) {
  switch (kind) {
    case GridKind::Fastest:
      return {};
    case GridKind::OneDevice:
      return {1, 1, 1, 1};
    case GridKind::DataParallel:
      return {1, 1, 1, {}};
    case GridKind::CutOutputs:
      return {1, {}, 1, 1};
    case GridKind::CutInputs:
      return {1, 1, {}, 1};
    case GridKind::CutGroups:
      return {{}, 1, 1, 1};
    case GridKind::WholeBatch:
      return {1, 1, 1, devices};
  }
  return {};
}

// Adds the prices of one collective on every level that it crosses.
void add_prices(internal::LevelPrices& prices, const PodPlan& plan, Pass pass,
                const PlannedCollective& c, std::vector<AlgorithmPrice>& all) {
  const bool both = c.operation == collectives::Operation::AllReduce;
  double part = double(c.elements * bytes_of(plan.problem.data_type));
  for (std::size_t l = 0; l < c.levels.size(); ++l) {
    part /= double(c.levels[l].members);
    if (c.levels[l].members == 1) continue;
    for (const collectives::LevelCost& cost : prices.at(l, plan.grid.levels[l], c.axis))
      all.push_back({pass, c, l, cost.algorithm,
                     cost.seconds(plan.pod.levels[l], part) * (both ? 2 : 1),
                     cost.algorithm == c.levels[l].algorithm});
  }
}

std::string grid_line(const GridAlternative& alternative, double fastest) {
  const std::string name(to_string(alternative.kind));
  if (!alternative.plan) return fmt::format("  {:<15} no plan\n", name);
  const PodPlan& plan = *alternative.plan;
  return fmt::format(
      "  {:<15} {:>12.2f} us {:>7.2f}x  {}{}\n", name, plan.seconds() * kMicroseconds,
      plan.seconds() / fastest, to_string(plan.grid),
      plan.serial_parts > 1 ? fmt::format(", {} serial parts", plan.serial_parts) : "");
}

}  // namespace

std::string_view to_string(GridKind kind) {
  switch (kind) {
    case GridKind::Fastest:
      return "fastest";
    case GridKind::OneDevice:
      return "one device";
    case GridKind::DataParallel:
      return "data parallel";
    case GridKind::CutOutputs:
      return "x alone";
    case GridKind::CutInputs:
      return "y alone";
    case GridKind::CutGroups:
      return "groups alone";
    case GridKind::WholeBatch:
      return "z on all";
  }
  return "";
}

PodExplanation explain_pod(const PodPlan& plan, planner::PlanCache* cache) {
  PodExplanation explanation;
  explanation.grids.push_back({GridKind::Fastest, plan});
  for (const GridKind kind : {GridKind::OneDevice, GridKind::DataParallel, GridKind::CutOutputs,
                              GridKind::CutInputs, GridKind::CutGroups, GridKind::WholeBatch}) {
    if (kind == GridKind::CutGroups && plan.problem.size.g == 1) continue;
    explanation.grids.push_back({kind, plan_pod(plan.problem, plan.pod, plan.options,
                                                pins_of(kind, plan.pod.devices()), cache)
                                           .plan});
  }
  internal::LevelPrices prices(plan.pod);
  for (const PodPass& pass : plan.passes)
    for (const auto* list : {&pass.before, &pass.after, &pass.once})
      for (const PlannedCollective& c : *list)
        add_prices(prices, plan, pass.pass, c, explanation.algorithms);
  return explanation;
}

std::string to_text(const PodExplanation& explanation) {
  std::string text = "grids\n";
  const double fastest = explanation.grids.front().plan->seconds();
  for (const GridAlternative& alternative : explanation.grids)
    text += grid_line(alternative, fastest);
  if (!explanation.algorithms.empty()) text += "collectives, * chosen\n";
  for (const AlgorithmPrice& price : explanation.algorithms)
    text += fmt::format("  {:<6} {:<14} of {:<2} level {}: {:<18} {:>10.2f} us{}\n",
                        to_string(price.pass), collectives::to_string(price.collective.operation),
                        to_string(price.collective.operand), price.level,
                        collectives::to_string(price.algorithm), price.seconds * kMicroseconds,
                        price.chosen ? " *" : "");
  return text;
}

std::string to_json(const PodExplanation& explanation) {
  Json object;
  for (const GridAlternative& alternative : explanation.grids) {
    Json& grid = object["grids"].push_back();
    grid["kind"] = to_string(alternative.kind);
    if (!alternative.plan) {
      grid["seconds"] = nullptr;
      continue;
    }
    const Dims parts = alternative.plan->grid.parts();
    grid["seconds"] = alternative.plan->seconds();
    grid["parts"] = {{"g", parts.g}, {"x", parts.x}, {"y", parts.y}, {"z", parts.z}};
    grid["serial_parts"] = alternative.plan->serial_parts;
  }
  object["collectives"] = json::List();
  for (const AlgorithmPrice& price : explanation.algorithms) {
    Json& row = object["collectives"].push_back();
    row["pass"] = to_string(price.pass);
    row["operation"] = collectives::to_string(price.collective.operation);
    row["operand"] = to_string(price.collective.operand);
    row["level"] = price.level;
    row["algorithm"] = collectives::to_string(price.algorithm);
    row["seconds"] = price.seconds;
    row["chosen"] = price.chosen;
  }
  return object.dump();
}

}  // namespace tessera::pod
