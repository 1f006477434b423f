#include "tessera/report/dense_verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/json/value.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/planner/sparse_below.hpp"
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

// The cost of the layer as it runs and that of what it is compared with.
struct Sides {
  double own = 0, other = 0;

  bool own_wins() const { return own < other; }
};

// Returns how many times less or more than the other side the own side costs, as "1.8x faster" or
// "1.2x as many".
std::string times_text(const Sides& sides, CostUnit unit) {
  if (sides.own_wins()) return fmt::format("{:.1f}x faster", ratio(sides.other, sides.own));
  return fmt::format("{:.1f}x as {}", ratio(sides.own, sides.other),
                     unit == CostUnit::Cycles ? "many" : "long");
}

Sides sides_of(const DenseComparison& c, double sparse, double dense) {
  return c.runs_dense ? Sides{dense, sparse} : Sides{sparse, dense};
}

std::string first_pass(const DenseComparison& c) {
  const ComparedPass& first = c.passes.front();
  const std::string of_dense = c.dense_name.empty() ? "" : ", " + c.dense_name;
  const std::string own =
      c.runs_dense ? "R dense" + of_dense + (of_dense.empty() ? "" : ",") : c.sparse_name;
  const double cost = c.runs_dense ? *first.dense : *first.sparse;
  const std::string head =
      fmt::format("{}{}{} {} {}", own, own.empty() ? "" : " ", to_string(first.pass),
                  cost_text(cost, c.unit), c.unit == CostUnit::Cycles ? "cycles" : "ms");
  if (!c.has_dense() || !c.has_sparse()) return head;
  const Sides sides = sides_of(c, *first.sparse, *first.dense);
  return fmt::format("{}, {} {} {} ({}{})", head, times_text(sides, c.unit),
                     sides.own_wins() ? "than" : "as", c.runs_dense ? c.sparse_name : "dense",
                     cost_text(sides.other, c.unit), c.runs_dense ? "" : of_dense);
}

std::string whole_step(const DenseComparison& c) {
  const Sides sides = sides_of(c, c.sparse_cost(), c.dense_cost());
  const ComparedPass& first = c.passes.front();
  if (sides.own_wins() && sides_of(c, *first.sparse, *first.dense).own_wins())
    return fmt::format("whole step {:.1f}x", ratio(sides.other, sides.own));
  return "whole step " + times_text(sides, c.unit);
}

// Returns the words before the first pass: which side wins, unless it is the one that runs.
std::string head_of(const DenseComparison& c) {
  switch (c.better()) {
    case Better::Sparse:
      return c.runs_dense ? "sparse would win: " : "";
    case Better::Dense:
      return c.runs_dense ? "" : "dense wins: ";
    case Better::Neither:
      return c.runs_dense ? "about equal: " : "about equal, keep R dense: ";
  }
  return "";
}

// Returns up to which density sparse pays. A layer on the other side of that density than its own
// pattern differs from the random patterns that the density belongs to.
std::string density_text(const DenseComparison& c) {
  const double density = *c.outlook.pays_up_to;
  if (density <= 0) return "random patterns pay at no density";
  const bool is_typical = c.density == 0 || c.sparse_wins() == (c.density <= density);
  const char* pays = c.runs_dense ? "sparse pays" : "pays";
  return fmt::format("{} up to density {:.3g}", is_typical ? pays : "random patterns pay", density);
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

// Returns the costs of both sides, and how many times less that of sparse is. Without the cost of a
// side, that cost and the ratio are null.
Json costs_json(const std::optional<double>& sparse, const std::optional<double>& dense,
                CostUnit unit) {
  const bool is_cycles = unit == CostUnit::Cycles;
  const auto cost = [&](const std::optional<double>& value) {
    if (!value) return Json();
    return is_cycles ? Json(std::llround(*value)) : Json(*value);
  };
  const bool both = dense && sparse && *sparse > 0;
  return {{is_cycles ? "sparse_cycles" : "sparse_seconds", cost(sparse)},
          {is_cycles ? "dense_cycles" : "dense_seconds", cost(dense)},
          {"dense_over_sparse", both ? Json(*dense / *sparse) : Json()}};
}

Json remedies_json(const Outlook& outlook) {
  if (!outlook.is_searched) return nullptr;
  Json remedies = json::List();
  for (const Remedy& remedy : outlook.remedies)
    remedies.push_back(
        {{"change", remedy.change}, {"dense_over_sparse", remedy.dense_over_sparse}});
  return remedies;
}

// Replaces the cost of a dense program by that of one with buckets for all blocks, if it is less.
void take_full_buckets(Problem full, BlockShape block, const device::Machine& machine,
                       const planner::Options& options, DenseBaseline& best) {
  full.block = block;
  full.density = 1;
  planner::Options sparse = options;
  sparse.constraints = {.use_dense = false};
  try {
    check_problem(full);
    if (!planner::sparse_plan_below(best.plan->cost.cycles, full, machine, sparse)) return;
    best.plan->cost = planner::plan_or_throw(full, machine, sparse).cost;
    best.buckets = block;
  } catch (const Error& error) {
    // No kernel has this combination of block and types.
    if (error.code() != ErrorCode::InvalidArgument) throw;
  }
}

}  // namespace

std::string to_string(Better better) {
  switch (better) {
    case Better::Sparse:
      return "sparse";
    case Better::Dense:
      return "dense";
    case Better::Neither:
      return "about equal";
  }
  return "";
}

Better better_of(const std::optional<double>& sparse, const std::optional<double>& dense,
                 double error) {
  if (!sparse && !dense) return Better::Neither;
  if (!sparse || !dense) return sparse ? Better::Sparse : Better::Dense;
  const double limit = (1 - error) * std::max(*sparse, *dense);
  if (*sparse < limit) return Better::Sparse;
  return *dense < limit ? Better::Dense : Better::Neither;
}

std::string DenseBaseline::name() const {
  if (buckets) return internal::block_name(*buckets) + ", all stored";
  return plan ? sums_name(plan->partials_type) : "";
}

double DenseComparison::sparse_cost() const {
  double sum = 0;
  for (const ComparedPass& pass : passes) {
    TESSERA_ASSERT(pass.sparse);
    sum += *pass.sparse;
  }
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

Better DenseComparison::better() const {
  return better_of(has_sparse() ? std::optional(sparse_cost()) : std::nullopt,
                   has_dense() ? std::optional(dense_cost()) : std::nullopt, error);
}

std::vector<PassCycles> pass_cycles(const planner::PlanCost& cost) {
  std::vector<PassCycles> cycles;
  for (const planner::PassCost& pass : cost.passes) cycles.push_back({pass.pass, pass.cycles()});
  return cycles;
}

DenseBaseline dense_baseline(const Problem& problem, const device::Machine& machine,
                             const planner::Options& options) {
  Problem dense = problem;
  dense.block = {1, 1};  // blocks and sums that no sparse kernel has do not matter here
  dense.partials_type = DataType::Float;
  DenseBaseline best = planner::plan_dense(
      dense, machine, {.available_memory_proportion = options.available_memory_proportion});
  if (!best.plan || options.poplibs_parity) return best;
  for (const BlockShape block : {problem.block, BlockShape{4, 4}, {8, 8}, {16, 16}})
    take_full_buckets(problem, block, machine, options, best);
  return best;
}

SparseAlternative sparse_alternative(const Problem& problem, const device::Machine& machine,
                                     const planner::Options& options, const PatternStats* stats) {
  planner::Options sparse = options;
  sparse.constraints.use_dense = false;
  planner::PlanResult result = planner::plan(problem, machine, sparse, stats);
  if (result.has_plan) return {std::move(result.plan), ""};
  return {std::nullopt, result.reason.empty() ? "no plan within searchLimit" : result.reason};
}

std::string representation_name(const planner::Plan& plan) {
  return plan.use_dense ? "R dense in " + internal::block_name(plan.block) : "";
}

std::string sums_name(DataType sums) { return to_string(sums) + " sums"; }

DenseComparison compare_cycles(const std::string& sparse_name,
                               const std::vector<PassCycles>& sparse, const DenseBaseline& dense) {
  DenseComparison c{.sparse_name = sparse_name,
                    .passes = {},
                    .is_whole_step = dense.plan && sparse.size() == dense.plan->cost.passes.size(),
                    .no_dense = dense.reason,
                    .dense_name = dense.name(),
                    .outlook = {}};
  for (const auto& [pass, cycles] : sparse) {
    const planner::PassCost* cost = dense.plan ? dense.plan->cost.find(pass) : nullptr;
    TESSERA_ASSERT(!dense.plan || cost != nullptr);
    c.passes.push_back({pass, double(cycles.value), {}});
    if (cost != nullptr) c.passes.back().dense = double(cost->cycles().value);
  }
  return c;
}

DenseComparison compare_dense_run(const std::vector<PassCycles>& dense, DataType sums,
                                  const SparseAlternative& sparse) {
  DenseComparison c{.sparse_name = sparse.plan ? internal::block_name(sparse.plan->block) : "",
                    .passes = {},
                    .is_whole_step = sparse.plan && dense.size() == sparse.plan->cost.passes.size(),
                    .runs_dense = true,
                    .no_dense = {},
                    .no_sparse = sparse.reason,
                    .dense_name = sums_name(sums),
                    .outlook = {}};
  for (const auto& [pass, cycles] : dense) {
    const planner::PassCost* cost = sparse.plan ? sparse.plan->cost.find(pass) : nullptr;
    TESSERA_ASSERT(!sparse.plan || cost != nullptr);
    c.passes.push_back({pass, {}, double(cycles.value)});
    if (cost != nullptr) c.passes.back().sparse = double(cost->cycles().value);
  }
  return c;
}

std::vector<std::string> verdict_parts(const DenseComparison& c) {
  TESSERA_ASSERT(!c.passes.empty());
  std::vector<std::string> parts;
  if (c.disturbed)
    return {
        fmt::format("none: the times differ by too much from run to run ({})", c.how),
        fmt::format("other programs used {:.0f} % of these cores; run again", 100 * *c.disturbed)};
  if (!c.has_dense()) {
    parts = {"only sparse fits: " + first_pass(c), c.no_dense};
  } else if (!c.has_sparse()) {
    parts = {"only dense fits: " + first_pass(c), c.no_sparse};
  } else {
    parts.push_back(head_of(c) + first_pass(c));
    if (c.passes.size() > 1 && c.is_whole_step) parts.push_back(whole_step(c));
  }
  const std::size_t costs = parts.size();
  if (c.outlook.pays_up_to) parts.push_back(density_text(c));
  if (c.outlook.is_searched && !c.sparse_wins())
    for (std::string& part : remedy_parts(c.outlook)) parts.push_back(std::move(part));
  const bool is_apart = !c.outlook.how.empty() && c.outlook.how != c.how && costs < parts.size();
  if (is_apart) parts[costs] = c.outlook.how + ": " + parts[costs];
  (is_apart ? parts[costs - 1] : parts.back()) += " (" + c.how + ")";
  return parts;
}

std::string verdict_text(const DenseComparison& comparison) {
  return fmt::format("{}", fmt::join(verdict_parts(comparison), "; "));
}

std::string to_json(const DenseComparison& c) {
  Json passes = json::List();
  for (const ComparedPass& pass : c.passes) {
    Json& one = passes.push_back({{"pass", to_string(pass.pass)}});
    one.update(costs_json(pass.sparse, pass.dense, c.unit));
  }
  Json json = {{"text", verdict_text(c)},
               {"better", c.disturbed ? Json() : Json(to_string(c.better()))},
               {"sparse_wins", !c.disturbed && c.sparse_wins()},
               {"runs_dense", c.runs_dense},
               {"how", c.how},
               {"error", c.error}};
  json.update(costs_json(c.has_sparse() ? std::optional(c.sparse_cost()) : std::nullopt,
                         c.has_dense() ? std::optional(c.dense_cost()) : std::nullopt, c.unit));
  json["no_dense_plan"] = c.has_dense() ? Json() : Json(c.no_dense);
  json["no_sparse_plan"] = c.has_sparse() ? Json() : Json(c.no_sparse);
  json["pays_up_to_density"] = c.outlook.pays_up_to ? Json(*c.outlook.pays_up_to) : Json();
  json["would_win"] = remedies_json(c.outlook);
  json["passes"] = std::move(passes);
  return json.dump();
}

std::string dense_note(const planner::Plan& plan, const planner::Options& options) {
  const bool was_open = !options.constraints.use_dense;
  const std::string sparse = ": planConstraints.useDense false keeps R sparse";
  if (plan.dense)
    return "R dense, without buckets" +
           (was_open ? ", because no plan with buckets that fits costs fewer cycles" + sparse : "");
  if (plan.use_dense)
    return fmt::format("R dense in {}x{} blocks{}", plan.block.rows, plan.block.cols,
                       was_open ? sparse : "");
  return "";
}

std::string verdict_line(const DenseComparison& comparison) {
  return fmt::format("verdict    {}\n", verdict_text(comparison));
}

}  // namespace tessera::report
