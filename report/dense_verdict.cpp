#include "tessera/report/dense_verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/report/internal/report_fields.hpp"
#include "tessera/report/internal/report_text.hpp"

namespace tessera::report {
namespace {

using internal::Json;

double ratio(double a, double b) { return b > 0 ? a / b : a; }

// Returns 1,234 for cycles and 0.1234 for a time, in milliseconds.
std::string cost_text(double cost, CostUnit unit) {
  if (unit == CostUnit::Cycles) return internal::grouped(std::llround(cost));
  return fmt::format("{:.4f}", cost * 1e3);
}

// Returns how many times less or more than dense sparse costs.
std::string beside_dense(const ComparedPass& pass, CostUnit unit) {
  if (pass.sparse < *pass.dense)
    return fmt::format("{:.1f}x faster than", ratio(*pass.dense, pass.sparse));
  return fmt::format("{:.1f}x as {} as", ratio(pass.sparse, *pass.dense),
                     unit == CostUnit::Cycles ? "many" : "long");
}

std::string first_pass(const DenseComparison& c) {
  const ComparedPass& first = c.passes.front();
  const std::string name = c.sparse_name.empty() ? "" : c.sparse_name + " ";
  const std::string head =
      fmt::format("{}{} {} {}", name, to_string(first.pass), cost_text(first.sparse, c.unit),
                  c.unit == CostUnit::Cycles ? "cycles" : "ms");
  if (!c.has_dense()) return head;
  return fmt::format("{}, {} dense ({}{})", head, beside_dense(first, c.unit),
                     cost_text(*first.dense, c.unit),
                     c.dense_name.empty() ? "" : ", " + c.dense_name);
}

std::string whole_step(const DenseComparison& c) {
  if (!c.sparse_wins())
    return fmt::format("whole step {:.1f}x as {}", ratio(c.sparse_cost(), c.dense_cost()),
                       c.unit == CostUnit::Cycles ? "many" : "long");
  const bool first_wins = c.passes.front().sparse < *c.passes.front().dense;
  return fmt::format("whole step {:.1f}x{}", ratio(c.dense_cost(), c.sparse_cost()),
                     first_wins ? "" : " faster");
}

// Returns up to which density sparse pays. A layer on the other side of that density than its own
// pattern differs from the random patterns that the density belongs to.
std::string density_text(const DenseComparison& c) {
  const double density = *c.outlook.pays_up_to;
  if (density <= 0) return "random patterns pay at no density";
  const bool is_typical = c.density == 0 || c.sparse_wins() == (c.density <= density);
  return fmt::format("{} up to density {:.3g}", is_typical ? "pays" : "random patterns pay",
                     density);
}

// Returns a part for each change that would win, so that lines can be broken between them.
std::vector<std::string> remedy_parts(const Outlook& outlook) {
  if (outlook.remedies.empty())
    return {"no other block or batch that was tried wins: store it dense"};
  std::vector<std::string> parts;
  for (const Remedy& remedy : outlook.remedies)
    parts.push_back(fmt::format("{} {} ({:.2f}x)", parts.empty() ? "would win:" : "or",
                                remedy.change, remedy.dense_over_sparse));
  return parts;
}

// Returns the costs of both sides, and how many times less that of sparse is. Without a dense cost
// the last two are null.
Json costs_json(double sparse, const std::optional<double>& dense, CostUnit unit) {
  const bool is_cycles = unit == CostUnit::Cycles;
  const auto cost = [&](double value) {
    return is_cycles ? Json(std::llround(value)) : Json(value);
  };
  return {{is_cycles ? "sparse_cycles" : "sparse_seconds", cost(sparse)},
          {is_cycles ? "dense_cycles" : "dense_seconds", dense ? cost(*dense) : Json()},
          {"dense_over_sparse", dense && sparse > 0 ? Json(*dense / sparse) : Json()}};
}

Json remedies_json(const Outlook& outlook) {
  if (!outlook.is_searched) return nullptr;
  Json remedies = Json::array();
  for (const Remedy& remedy : outlook.remedies)
    remedies.push_back(
        {{"change", remedy.change}, {"dense_over_sparse", remedy.dense_over_sparse}});
  return remedies;
}

}  // namespace

double DenseComparison::sparse_cost() const {
  double sum = 0;
  for (const ComparedPass& pass : passes) sum += pass.sparse;
  return sum;
}

double DenseComparison::dense_cost() const {
  double sum = 0;
  for (const ComparedPass& pass : passes) {
    TESSERA_ASSERT(pass.dense);
    sum += *pass.dense;
  }
  return sum;
}

bool DenseComparison::sparse_wins() const { return !has_dense() || sparse_cost() < dense_cost(); }

std::vector<PassCycles> pass_cycles(const planner::PlanCost& cost) {
  std::vector<PassCycles> cycles;
  for (const planner::PassCost& pass : cost.passes) cycles.push_back({pass.pass, pass.cycles()});
  return cycles;
}

std::string representation_name(const planner::Plan& plan) {
  if (plan.dense) return "R dense";
  return plan.use_dense ? "R dense in " + internal::block_name(plan.block) : "";
}

DenseComparison compare_cycles(const std::string& sparse_name,
                               const std::vector<PassCycles>& sparse,
                               const planner::DensePlanResult& dense) {
  DenseComparison c{.sparse_name = sparse_name,
                    .passes = {},
                    .is_whole_step = dense.plan && sparse.size() == dense.plan->cost.passes.size(),
                    .no_dense = dense.reason,
                    .dense_name = {},
                    .outlook = {}};
  for (const auto& [pass, cycles] : sparse) {
    const planner::PassCost* cost = dense.plan ? dense.plan->cost.find(pass) : nullptr;
    TESSERA_ASSERT(!dense.plan || cost != nullptr);
    c.passes.push_back({pass, double(cycles.value), {}});
    if (cost != nullptr) c.passes.back().dense = double(cost->cycles().value);
  }
  return c;
}

std::vector<std::string> verdict_parts(const DenseComparison& c) {
  TESSERA_ASSERT(!c.passes.empty());
  std::vector<std::string> parts;
  if (c.has_dense()) {
    parts.push_back((c.sparse_wins() ? "" : "dense wins: ") + first_pass(c));
    if (c.passes.size() > 1 && c.is_whole_step) parts.push_back(whole_step(c));
  } else {
    parts = {"only sparse fits: " + first_pass(c), c.no_dense};
  }
  if (c.outlook.pays_up_to) parts.push_back(density_text(c));
  if (c.outlook.is_searched && !c.sparse_wins())
    for (std::string& part : remedy_parts(c.outlook)) parts.push_back(std::move(part));
  parts.back() += " (" + c.how + ")";
  return parts;
}

std::string verdict_text(const DenseComparison& comparison) {
  return fmt::format("{}", fmt::join(verdict_parts(comparison), "; "));
}

std::string to_json(const DenseComparison& c) {
  Json passes = Json::array();
  for (const ComparedPass& pass : c.passes) {
    passes.push_back({{"pass", to_string(pass.pass)}});
    passes.back().update(costs_json(pass.sparse, pass.dense, c.unit));
  }
  Json json = {{"text", verdict_text(c)}, {"sparse_wins", c.sparse_wins()}, {"how", c.how}};
  json.update(costs_json(c.sparse_cost(),
                         c.has_dense() ? std::optional(c.dense_cost()) : std::nullopt, c.unit));
  json["no_dense_plan"] = c.has_dense() ? Json() : Json(c.no_dense);
  json["pays_up_to_density"] = c.outlook.pays_up_to ? Json(*c.outlook.pays_up_to) : Json();
  json["would_win"] = remedies_json(c.outlook);
  json["passes"] = std::move(passes);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tessera::report
