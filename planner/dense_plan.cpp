#include "tessera/planner/dense_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tessera/base/error.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/planner/internal/dense_layer.hpp"
#include "tessera/planner/internal/dense_search.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/internal/terms_text.hpp"

namespace tessera::planner {
namespace {

using internal::DenseCase;
using internal::DenseChoice;

DataType sums_of(const Problem& problem, const DenseOptions& options) {
  const bool halves = problem.data_type == DataType::Half;
  const DataType sums = options.partials_type.value_or(halves ? DataType::Half : DataType::Float);
  if (sums != DataType::Float && !(sums == DataType::Half && halves))
    throw_invalid(fmt::format("dense sums of {} for {}; they must be float, or half for half",
                              to_string(sums), to_string(problem.data_type)));
  return sums;
}

void check(const Problem& problem, const device::Machine& machine, const DenseOptions& options) {
  check_problem(problem);
  device::check_machine(machine, "machine");
  internal::check_memory_share(options.available_memory_proportion);
}

std::string no_plan(const DenseCase& c, const DenseOptions& options, std::int64_t least_bytes) {
  const std::string name = fmt::format("no dense plan for {}", to_string(c.product.pass));
  if (c.groups > c.machine.tiles)
    return fmt::format("{}: {} groups need {} tiles and {} has {}; use a machine with more tiles",
                       name, c.groups, c.groups, c.machine.name, c.machine.tiles);
  return fmt::format(
      "{}: {}; use more tiles or a smaller layer", name,
      internal::too_small_text(c.machine, options.available_memory_proportion, least_bytes));
}

std::string pass_text(const DensePassPlan& pass) {
  return fmt::format(
             "{:<10} {} cycles, {} bytes: {} in {} parts, {} round{}, weights from the {}\n",
             to_string(pass.product.pass), pass.cost.cycles().value, pass.cost.temp().value,
             to_string(pass.product.size), to_string(pass.parts), pass.rounds.product(),
             pass.rounds.product() == 1 ? "" : "s", pass.weights == Side::Left ? "left" : "right") +
         internal::terms_text(pass.cost);
}

}  // namespace

std::string to_string(const ProductShape& shape) {
  return fmt::format("{} x {} x {}", shape.rows, shape.inner, shape.columns);
}

PassProduct dense_product(const Problem& problem, Pass pass) {
  const auto [g, x, y, z] = problem.size;
  switch (pass) {
    case Pass::Fwd:
      return {pass, {x, y, z}, false, false};
    case Pass::GradA:
      return {pass, {y, x, z}, /*left_transposed=*/true, false};
    case Pass::GradW:
      break;
  }
  // The kernel takes both operands along z, while Fwd and GradA take them along y and x.
  return {pass, {x, z, y}, /*left_transposed=*/true, /*right_transposed=*/true};
}

codelets::DenseKernel dense_kernel(const device::Machine& machine, DataType data_type,
                                   DataType partials_type) {
  // A unit for floats multiplies two columns: that gives the stated peaks of all presets, and
  // PopLibs' estimate has a case for twice the units, too.
  const bool is_float = data_type == DataType::Float;
  return {.data_type = data_type,
          .partials_type = partials_type,
          .workers = machine.workers,
          .units = std::max<std::int64_t>(machine.conv_units(data_type, partials_type), 1) *
                   (is_float ? 2 : 1),
          .load_bytes = machine.data_path_bits / 8};
}

std::int64_t even_spread_senders(const device::Machine& machine, std::int64_t bytes,
                                 std::int64_t all) {
  if (machine.tiles == 1 || bytes == 0) return 0;
  return std::min(machine.tiles - 1, ceil_div(bytes, ceil_div(all, machine.tiles)));
}

const DensePassPlan* DensePlan::find(Pass pass) const {
  const auto it = std::ranges::find_if(
      passes, [pass](const DensePassPlan& plan) { return plan.product.pass == pass; });
  return it == passes.end() ? nullptr : &*it;
}

DensePlanResult plan_dense(const Problem& problem, const device::Machine& machine,
                           const DenseOptions& options) {
  const DefaultFloatMode mode;
  return internal::plan_dense_below(problem, machine, options, internal::kUnbounded);
}

namespace internal {

namespace {

std::vector<DenseCase> cases_of(const Problem& problem, const device::Machine& machine,
                                DataType sums) {
  std::vector<DenseCase> cases;
  for (const Pass pass : passes_of(problem))
    cases.push_back({.product = dense_product(problem, pass),
                     .groups = problem.size.g,
                     .machine = machine,
                     .kernel = dense_kernel(machine, problem.data_type, sums)});
  return cases;
}

}  // namespace

std::int64_t floor_without_buckets(const Problem& problem, const device::Machine& machine,
                                   const DenseOptions& options) {
  std::int64_t sum = 0;
  for (const DenseCase& c : cases_of(problem, machine, sums_of(problem, options)))
    sum += dense_floor(c);
  return sum;
}

// A pass may cost what the limit leaves after the passes before it and the floors of those to come.
DensePlanResult plan_dense_below(const Problem& problem, const device::Machine& machine,
                                 const DenseOptions& options, std::int64_t fewer_than) {
  check(problem, machine, options);
  const DataType sums = sums_of(problem, options);
  const bool is_limited = fewer_than != kUnbounded;
  DenseLimits limits{temp_bound(machine, options.available_memory_proportion),
                     machine.tile_memory.value};
  DensePlan plan{problem.data_type, sums, problem.size.g, {}, {}};
  const std::vector<DenseCase> cases = cases_of(problem, machine, sums);
  std::vector<std::int64_t> floors(cases.size());
  if (is_limited) std::ranges::transform(cases, floors.begin(), dense_floor);
  std::int64_t left = std::accumulate(floors.begin(), floors.end(), fewer_than, std::minus<>());
  DensePlanResult result;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (left <= 0) return result;
    if (is_limited) limits.fewer_than = left + floors[i];
    const DenseSearch found = search_dense(cases[i], limits);
    result.evaluations += found.estimates;
    if (!found.best) {
      if (!is_limited) result.reason = no_plan(cases[i], options, found.least_bytes);
      return result;
    }
    left -= found.best->estimate.cycles - floors[i];
    internal::add_pass(plan, internal::pass_plan(cases[i], *found.best),
                       Bytes(found.best->estimate.resident));
  }
  result.plan = std::move(plan);
  return result;
}

}  // namespace internal

DensePlan plan_dense_or_throw(const Problem& problem, const device::Machine& machine,
                              const DenseOptions& options) {
  DensePlanResult result = plan_dense(problem, machine, options);
  if (result.plan) return *std::move(result.plan);
  throw Error(ErrorCode::NoSolution, result.reason);
}

std::string to_string(const DensePlan& plan) {
  std::string text = fmt::format(
      "dense      {} with {} sums\n"
      "cost       {} cycles, {} bytes temporary, {} bytes resident per tile\n",
      to_string(plan.data_type), to_string(plan.partials_type), plan.cost.cycles.value,
      plan.cost.temp.value, plan.cost.resident.value);
  for (const DensePassPlan& pass : plan.passes) text += pass_text(pass);
  return text;
}

}  // namespace tessera::planner
