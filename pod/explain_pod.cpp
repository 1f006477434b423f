#include "tessera/pod/explain_pod.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/planner/plan_json.hpp"
#include "tessera/pod/internal/pod_cost.hpp"

namespace tessera::pod {
namespace {

using Json = json::Value;

// The kinds of grids beside the fastest one.
struct Kind {
  std::string_view name;
  GridPins pins;
};

std::vector<Kind> other_kinds(const PodPlan& plan) {
  std::vector<Kind> kinds{{"one device", {1, 1, 1, 1}},
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
    const double part = internal::part_bytes(plan.grid, l, c, plan.problem.data_type);
    for (const collectives::LevelCost& cost : prices.at(l, plan.grid.levels[l], c.axis))
      all.push_back({pass, c, l, cost.algorithm, prices.seconds(l, cost, c.operation, part),
                     cost.algorithm == c.levels[l].algorithm});
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
  Json object;
  for (const GridAlternative& alternative : explanation.grids) {
    Json& grid = object["grids"].push_back();
    grid["kind"] = alternative.kind;
    if (!alternative.plan) {
      grid["seconds"] = nullptr;
      continue;
    }
    grid["seconds"] = alternative.plan->seconds();
    grid["parts"] = planner::json_of(alternative.plan->grid.parts());
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
