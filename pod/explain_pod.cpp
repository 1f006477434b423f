#include "tessera/pod/explain_pod.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/planner/plan_json.hpp"
#include "tessera/pod/internal/pod_cost.hpp"

namespace tessera::pod {
namespace {

using Json = json::Value;

// Returns the kinds of grids beside the fastest one.
std::vector<std::pair<std::string_view, GridPins>> other_kinds(const PodPlan& plan) {
  std::vector<std::pair<std::string_view, GridPins>> kinds{{"one device", {1, 1, 1, 1}},
                                                           {"data parallel", {1, 1, 1, {}}},
                                                           {"x alone", {1, {}, 1, 1}},
                                                           {"y alone", {1, 1, {}, 1}}};
  if (plan.problem.size.g > 1) kinds.push_back({"groups alone", {{}, 1, 1, 1}});
  kinds.push_back({"z on all", {1, 1, 1, plan.pod.devices()}});
  return kinds;
}

// Adds the prices of one collective on every level that it crosses.
void add_prices(internal::LevelPrices& prices, const PodPlan& plan, Pass pass,
                const PlannedCollective& c, std::vector<AlgorithmPrice>& all) {
  for (std::size_t l = 0; l < c.levels.size(); ++l) {
    if (c.levels[l].members == 1) continue;
    for (const internal::LevelPrice& price : prices.all(plan.grid, l, c, plan.problem.data_type))
      all.push_back(
          {pass, c, l, price.algorithm, price.seconds, price.algorithm == c.levels[l].algorithm});
  }
}

std::string grid_line(const GridAlternative& alternative, double fastest) {
  if (!alternative.plan) return fmt::format("  {:<15} no plan\n", alternative.kind);
  const PodPlan& plan = *alternative.plan;
  return fmt::format(
      "  {:<15} {:>12.2f} us {:>7.2f}x  {}{}\n", alternative.kind, plan.seconds() * kMicroseconds,
      plan.seconds() / fastest, to_string(plan.grid),
      plan.serial_parts > 1 ? fmt::format(", {} serial parts", plan.serial_parts) : "");
}

}  // namespace

PodExplanation explain_pod(const PodPlan& plan, planner::PlanCache* cache) {
  PodExplanation explanation;
  explanation.grids.push_back({"fastest", plan});
  for (const auto& [name, pins] : other_kinds(plan))
    explanation.grids.push_back(
        {name, plan_pod(plan.problem, plan.pod, plan.options, pins, cache).plan});
  internal::LevelPrices prices(plan.pod);
  for (const PodPass& pass : plan.passes)
    for (const PlannedCollective& c : pass.collectives)
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
  Json grids = json::List(), algorithms = json::List();
  for (const auto& [kind, plan] : explanation.grids) {
    Json grid = {{"kind", kind}, {"seconds", nullptr}};
    if (plan)
      grid.update({{"seconds", plan->seconds()},
                   {"parts", planner::json_of(plan->grid.parts())},
                   {"serial_parts", plan->serial_parts}});
    grids.push_back(std::move(grid));
  }
  for (const AlgorithmPrice& price : explanation.algorithms)
    algorithms.push_back({{"pass", to_string(price.pass)},
                          {"operation", collectives::to_string(price.collective.operation)},
                          {"operand", to_string(price.collective.operand)},
                          {"level", price.level},
                          {"algorithm", collectives::to_string(price.algorithm)},
                          {"seconds", price.seconds},
                          {"chosen", price.chosen}});
  const Json object = {{"grids", std::move(grids)}, {"collectives", std::move(algorithms)}};
  return object.dump();
}

}  // namespace tessera::pod
