#include "tessera/planner/static_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <ostream>

#include "tessera/base/error.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/planner/internal/static_counted_search.hpp"
#include "tessera/planner/internal/static_search.hpp"
#include "tessera/planner/internal/terms_text.hpp"

namespace tessera::planner {
namespace {

using internal::StaticCase;
using internal::StaticChoice;

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::InvalidArgument, message);
}

// Checks the places of the blocks.
void check_places(const BlockPattern& pattern) {
  const std::int64_t rows = pattern.block_rows, cols = pattern.block_cols;
  const auto begin = pattern.row_begin;
  if (std::ssize(begin) != rows + 1 || begin.front() != 0 || begin.back() != pattern.blocks() ||
      !std::ranges::is_sorted(begin))
    refuse("the first positions of the pattern's block rows must ascend from 0 to its blocks");
  for (std::size_t row = 0; row < std::size_t(rows); ++row) {
    const auto row_columns =
        pattern.col.subspan(std::size_t(begin[row]), std::size_t(begin[row + 1] - begin[row]));
    const bool ascends =
        std::ranges::adjacent_find(row_columns, std::ranges::greater_equal()) == row_columns.end();
    if (!ascends ||
        (!row_columns.empty() && (row_columns.front() < 0 || row_columns.back() >= cols)))
      refuse(fmt::format("the columns of block row {} of the pattern must ascend in 0..{}", row,
                         cols - 1));
  }
}

void check_pattern(const Problem& problem, const BlockPattern& pattern) {
  const Dims size = problem.size_in_blocks();
  const std::int64_t rows = size.x / problem.block.rows, cols = size.y / problem.block.cols;
  if (pattern.block != problem.block || pattern.block_rows != rows || pattern.block_cols != cols)
    refuse(fmt::format("the pattern has {} x {} blocks of {}x{}; the layer needs {} x {} of {}x{}",
                       pattern.block_rows, pattern.block_cols, pattern.block.rows,
                       pattern.block.cols, rows, cols, problem.block.rows, problem.block.cols));
}

void check_layer(const Problem& problem, const device::Machine& machine) {
  check_problem(problem);
  device::check_machine(machine, "machine");
  if (problem.size.g != 1)
    refuse(fmt::format("static plans have one group and the layer has {}", problem.size.g));
  if (problem.is_element_wise() && problem.partials_type != DataType::Float)
    refuse("static plans of single elements have float sums; partials type is half");
  if (!codelets::has_static_kernel(problem.block))
    refuse(fmt::format("no static kernel for blocks of {}x{}; they must be 1x1, 4x4, 8x8 or 16x16",
                       problem.block.rows, problem.block.cols));
}

void check_request(const Problem& problem, const BlockPattern& pattern,
                   const device::Machine& machine, const StaticOptions& options) {
  check_layer(problem, machine);
  const double share = options.available_memory_proportion;
  if (!(share > 0 && share <= 1))
    refuse(fmt::format("availableMemoryProportion is {}; it must be in (0, 1]", share));
  const bool is_pinned = options.z_parts || options.bands;
  if (options.z_parts.value_or(1) < 1 || options.bands.value_or(1) < 1)
    refuse("the numbers of parts of the batch and of bands must be 1 at least");
  if (is_pinned && options.poplibs_parity)
    refuse("PopLibs' search chooses the parts of the batch and the bands; omit them");
  check_pattern(problem, pattern);
}

void check(const Problem& problem, const BlockPattern& pattern, const device::Machine& machine,
           const StaticOptions& options) {
  check_request(problem, pattern, machine, options);
  check_places(pattern);
}

std::string no_plan(const StaticCase& c, const StaticOptions& options, std::int64_t least_bytes) {
  const double percent = 100 * options.available_memory_proportion;
  if (least_bytes == std::numeric_limits<std::int64_t>::max())
    return fmt::format(
        "no static plan: every cut has more bands than tiles, or more than 65535 words or offsets "
        "past 16 bits; {} has {} tiles",
        c.machine.name, c.machine.tiles);
  return fmt::format(
      "no static plan: a tile needs {} bytes at least and has {}, of which temporary data may take "
      "{:.0f} %; use more tiles or a smaller batch",
      least_bytes, c.machine.tile_memory.value, percent);
}

void check_layouts(const StaticPlan& plan, const BlockPattern& pattern) {
  for (const StaticLayout& layout : plan.layouts)
    if (std::ssize(layout.tile_of) != pattern.blocks())
      refuse(fmt::format("the plan has {} blocks and the pattern {}", layout.tile_of.size(),
                         pattern.blocks()));
}

std::int64_t bound_of(const device::Machine& machine, const StaticOptions& options) {
  return std::int64_t(
      std::floor(double(machine.tile_memory.value) * options.available_memory_proportion));
}

internal::StaticLimits limits_of(const device::Machine& machine, const StaticOptions& options) {
  return {bound_of(machine, options), machine.tile_memory.value, options.z_parts, options.bands};
}

// A product without blocks only clears the result, which no price of PopLibs counts.
StaticPlan empty_plan(const StaticCase& c) {
  StaticPlan plan{.data_type = c.problem.data_type, .parts = {}, .layouts = {}, .cost = {}};
  for (const Pass pass : passes_of(c.problem)) plan.cost.passes.push_back({pass, {}});
  return plan;
}

std::string no_counted_plan(const internal::StaticLimits& limits,
                            const internal::StaticObstacle& obstacle) {
  if ((limits.z_parts || limits.bands) &&
      obstacle.least_word == std::numeric_limits<std::int64_t>::max())
    return fmt::format(
        "no static plan: the batch cannot be cut into {} parts of equal tiles, and the columns "
        "into "
        "{} bands; leave one of them open",
        limits.z_parts.value_or(1), limits.bands.value_or(1));
  if (obstacle.least_bytes == std::numeric_limits<std::int64_t>::max())
    return fmt::format(
        "no static plan: a kernel's words have 16 bits, and a tile needs {} words or an offset of "
        "that size at least; use more tiles",
        obstacle.least_word);
  return fmt::format(
      "no static plan: a tile needs {} bytes at least and has {}, of which temporary data may take "
      "{}; use more tiles or a smaller batch",
      obstacle.least_bytes, limits.bytes, limits.temp);
}

// Returns PopLibs' plan with its counted cost, if it keeps the limits.
std::optional<StaticPlan> popsparse_plan(const StaticCase& c, const BlockPattern& pattern,
                                         const internal::StaticLimits& limits) {
  const auto found = internal::search_as_poplibs(c, limits.temp);
  if (!found.best) return {};
  StaticPlan plan = internal::plan_of(c, pattern, *found.best);
  const internal::CountedPasses counted = internal::counted_parts(c, plan, pattern);
  plan.cost = internal::plan_cost_of(c, counted);
  const bool fits = limits.allow(std::ssize(plan.parts), std::ssize(plan.bands) - 1) &&
                    counted.fits_words() && plan.cost.temp.value <= limits.temp &&
                    (plan.cost.temp + plan.cost.resident).value <= limits.bytes;
  return fits ? std::optional(std::move(plan)) : std::nullopt;
}

}  // namespace

struct StaticPlanner::State {
  internal::CutCounts counts;
};

StaticPlanner::StaticPlanner(const BlockPattern& pattern) {
  check_places(pattern);
  state_ = std::make_unique<State>(State{internal::CutCounts(pattern)});
}

StaticPlanner::~StaticPlanner() = default;
StaticPlanner::StaticPlanner(StaticPlanner&&) noexcept = default;

StaticPlanResult StaticPlanner::plan(const Problem& problem, const device::Machine& machine,
                                     const StaticOptions& options) {
  const BlockPattern& pattern = state_->counts.pattern();
  if (options.poplibs_parity) return plan_static_as_poplibs(problem, pattern, machine, options);
  check_request(problem, pattern, machine, options);
  const StaticCase c{problem, machine, state_->counts.counts()};
  if (c.counts.blocks == 0) return {empty_plan(c), "", 0, {}};
  const internal::StaticLimits limits = limits_of(machine, options);
  const auto found = internal::search_by_counts(c, state_->counts, limits);
  std::optional<StaticPlan> plan;
  if (found.best) plan = internal::plan_of(c, pattern, *found.best);
  auto popsparse = popsparse_plan(c, pattern, limits);
  if (popsparse && (!plan || popsparse->cost.cycles < plan->cost.cycles)) plan.swap(popsparse);
  if (!plan) return {std::nullopt, no_counted_plan(limits, found.obstacle), found.counted, {}};
  constexpr std::size_t kRunnerUps = 5;
  return {std::move(plan), "", found.counted, internal::runner_ups(found, kRunnerUps)};
}

StaticCostResult StaticPlanner::quick_cost(const Problem& problem, const device::Machine& machine,
                                           const StaticOptions& options) {
  const BlockPattern& pattern = state_->counts.pattern();
  check_request(problem, pattern, machine, options);
  if (options.poplibs_parity) refuse("PopLibs' prices have no quick cost; plan with them");
  const StaticCase c{problem, machine, state_->counts.counts()};
  if (c.counts.blocks == 0) return {empty_plan(c).cost, 0, ""};
  const internal::StaticLimits limits = limits_of(machine, options);
  const auto found = internal::quick_search(c, state_->counts, limits);
  if (!found.best) return {std::nullopt, 0, no_counted_plan(limits, found.obstacle)};
  return {found.cost, found.best->parts * found.best->tiles, ""};
}

StaticPlanResult plan_static(const Problem& problem, const BlockPattern& pattern,
                             const device::Machine& machine, const StaticOptions& options) {
  return StaticPlanner(pattern).plan(problem, machine, options);
}

StaticPlanResult plan_static_as_poplibs(const Problem& problem, const BlockPattern& pattern,
                                        const device::Machine& machine,
                                        const StaticOptions& options) {
  check(problem, pattern, machine, options);
  const StaticCase c{problem, machine, internal::count_blocks(pattern)};
  if (c.counts.blocks == 0) return {empty_plan(c), "", 0, {}};
  const auto found = internal::search_as_poplibs(c, bound_of(machine, options));
  if (!found.best) return {std::nullopt, no_plan(c, options, found.least_bytes), found.prices, {}};
  return {internal::plan_of(c, pattern, *found.best), "", found.prices, {}};
}

PlanCost count_static_cost(const StaticPlan& plan, const Problem& problem,
                           const BlockPattern& pattern, const device::Machine& machine) {
  check(problem, pattern, machine, {});
  check_layouts(plan, pattern);
  const StaticCase c{problem, machine, internal::count_blocks(pattern)};
  return internal::plan_cost_of(c, internal::counted_parts(c, plan, pattern));
}

StaticBounds static_bounds(const Problem& problem, const BlockPattern& pattern,
                           const device::Machine& machine) {
  check(problem, pattern, machine, {});
  return internal::bounds_of({problem, machine, internal::count_blocks(pattern)});
}

Cycles static_floor(const Problem& problem, const device::Machine& machine, std::int64_t blocks) {
  check_layer(problem, machine);
  if (blocks < 0) refuse(fmt::format("{} blocks; the number cannot be negative", blocks));
  internal::StaticCounts counts;
  counts.blocks = blocks;
  return internal::floor_of({problem, machine, std::move(counts)});
}

std::string to_string(RunKind kind) {
  switch (kind) {
    case RunKind::Even:
      return "even runs";
    case RunKind::WholeRows:
      return "whole rows";
    case RunKind::LightRows:
      return "light rows";
    case RunKind::UncutRows:
      return "uncut rows";
  }
  assertion_failed("every kind of run has a name", __FILE__, __LINE__);
}

std::int64_t StaticPlan::tiles_used() const {
  std::int64_t tiles = 0;
  for (const StaticPart& part : parts) tiles += std::ssize(layouts[std::size_t(part.layout)].tiles);
  return tiles;
}

std::string to_string(const StaticPlan& plan) {
  std::string text = fmt::format(
      "static     {}, {} part{} of the batch, {} band{}, {} tiles\n"
      "cost       {} cycles, {} bytes temporary per tile\n",
      to_string(plan.data_type), plan.parts.size(), plan.parts.size() == 1 ? "" : "s",
      plan.bands.size() - 1, plan.bands.size() == 2 ? "" : "s", plan.tiles_used(),
      plan.cost.cycles.value, plan.cost.temp.value);
  for (const PassCost& pass : plan.cost.passes) {
    if (plan.cost.passes.size() > 1)
      text += fmt::format("{:<31} {:>12} cycles\n", to_string(pass.pass), pass.cycles().value);
    text += internal::terms_text(pass);
  }
  return text;
}

std::ostream& operator<<(std::ostream& out, const StaticPlan& plan) {
  return out << to_string(plan);
}

}  // namespace tessera::planner
