#include "tessera/planner/static_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/internal/static_counted_search.hpp"
#include "tessera/planner/internal/static_search.hpp"
#include "tessera/planner/internal/terms_text.hpp"

namespace tessera::planner {
namespace {

using internal::StaticCase;
using internal::StaticChoice;

// Checks the places of the blocks.
void check_places(const BlockPattern& pattern) {
  const std::int64_t rows = pattern.block_rows, cols = pattern.block_cols;
  const auto begin = pattern.row_begin;
  if (std::ssize(begin) != rows + 1 || begin.front() != 0 || begin.back() != pattern.blocks() ||
      !std::ranges::is_sorted(begin))
    throw_invalid(
        "the first positions of the pattern's block rows must ascend from 0 to its blocks");
  for (std::size_t row = 0; row < std::size_t(rows); ++row) {
    const auto row_columns =
        pattern.col.subspan(std::size_t(begin[row]), std::size_t(begin[row + 1] - begin[row]));
    const bool ascends =
        std::ranges::adjacent_find(row_columns, std::ranges::greater_equal()) == row_columns.end();
    if (!ascends ||
        (!row_columns.empty() && (row_columns.front() < 0 || row_columns.back() >= cols)))
      throw_invalid(fmt::format("the columns of block row {} of the pattern must ascend in 0..{}",
                                row, cols - 1));
  }
}

void check_pattern(const Problem& problem, const BlockPattern& pattern) {
  const Dims size = problem.size_in_blocks();
  const std::int64_t rows = size.x / problem.block.rows, cols = size.y / problem.block.cols;
  if (pattern.block != problem.block || pattern.block_rows != rows || pattern.block_cols != cols)
    throw_invalid(
        fmt::format("the pattern has {} x {} blocks of {}x{}; the layer needs {} x {} of {}x{}",
                    pattern.block_rows, pattern.block_cols, pattern.block.rows, pattern.block.cols,
                    rows, cols, problem.block.rows, problem.block.cols));
}

void check_layer(const Problem& problem, const device::Machine& machine) {
  check_problem(problem);
  device::check_machine(machine, "machine");
  if (problem.size.g != 1)
    throw_invalid(fmt::format("static plans have one group and the layer has {}", problem.size.g));
  if (problem.is_element_wise() && problem.partials_type != DataType::Float)
    throw_invalid("static plans of single elements have float sums; partials type is half");
  codelets::check_static_kernel(problem.block);
}

void check_request(const Problem& problem, const BlockPattern& pattern,
                   const device::Machine& machine, const StaticOptions& options) {
  check_layer(problem, machine);
  internal::check_memory_share(options.available_memory_proportion);
  const bool is_pinned = options.z_parts || options.bands;
  if (options.z_parts.value_or(1) < 1 || options.bands.value_or(1) < 1)
    throw_invalid("the numbers of parts of the batch and of bands must be 1 at least");
  if (is_pinned && options.poplibs_parity)
    throw_invalid("PopLibs' search chooses the parts of the batch and the bands; omit them");
  check_pattern(problem, pattern);
}

void check(const Problem& problem, const BlockPattern& pattern, const device::Machine& machine,
           const StaticOptions& options) {
  check_request(problem, pattern, machine, options);
  check_places(pattern);
}

std::string no_plan(const StaticCase& c, const StaticOptions& options, std::int64_t least_bytes) {
  if (least_bytes == std::numeric_limits<std::int64_t>::max())
    return fmt::format(
        "no static plan: every cut has more bands than tiles, or more than 65535 words or offsets "
        "past 16 bits; {} has {} tiles",
        c.machine.name, c.machine.tiles);
  return fmt::format(
      "no static plan: {}; use more tiles or a smaller batch",
      internal::too_small_text(c.machine, options.available_memory_proportion, least_bytes));
}

void check_layouts(const std::vector<StaticLayout>& layouts, const BlockPattern& pattern) {
  for (const StaticLayout& layout : layouts)
    if (std::ssize(layout.tile_of) != pattern.blocks())
      throw_invalid(fmt::format("the plan has {} blocks and the pattern {}", layout.tile_of.size(),
                                pattern.blocks()));
}

std::int64_t bound_of(const device::Machine& machine, const StaticOptions& options) {
  return internal::temp_bound(machine, options.available_memory_proportion);
}

internal::StaticLimits limits_of(const device::Machine& machine, const StaticOptions& options) {
  return {bound_of(machine, options), machine.tile_memory.value, options.z_parts, options.bands};
}

// A product without blocks only clears the result, which no price of PopLibs counts.
StaticPlan empty_plan(const StaticCase& c) {
  StaticPlan plan = internal::plan_of(c, StaticAssignment());
  for (const Pass pass : passes_of(c.problem)) plan.cost.passes.push_back({pass, {}});
  return plan;
}

std::string no_counted_plan(const device::Machine& machine, const StaticOptions& options,
                            const internal::StaticObstacle& obstacle) {
  if ((options.z_parts || options.bands) &&
      obstacle.least_word == std::numeric_limits<std::int64_t>::max())
    return fmt::format(
        "no static plan: the batch cannot be cut into {} parts of equal tiles, and the columns "
        "into "
        "{} bands; leave one of them open",
        options.z_parts.value_or(1), options.bands.value_or(1));
  if (obstacle.least_bytes == std::numeric_limits<std::int64_t>::max())
    return fmt::format(
        "no static plan: a kernel's words have 16 bits, and a tile needs {} words or an offset of "
        "that size at least; use more tiles",
        obstacle.least_word);
  return fmt::format(
      "no static plan: {}; use more tiles or a smaller batch",
      internal::too_small_text(machine, options.available_memory_proportion, obstacle.least_bytes));
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
                    counted.fits_words() && limits.hold(plan.cost);
  return fits ? std::optional(std::move(plan)) : std::nullopt;
}

// A transposed pattern and the searches of its cuts.
struct TransposedSearcher {
  explicit TransposedSearcher(const BlockPattern& given)
      : pattern(internal::transposed_pattern(given)), searcher(pattern.view()) {}

  internal::TransposedPattern pattern;
  internal::StaticSearcher searcher;
};

// Returns the cost of all passes together.
PlanCost sum_of(const PlanCost& forward, const PlanCost& grad_a) {
  PlanCost sum = forward;
  sum.cycles += grad_a.cycles;
  sum.temp = std::max(sum.temp, grad_a.temp);
  sum.resident += grad_a.resident;
  sum.passes.insert(sum.passes.begin() + 1, grad_a.passes.front());
  return sum;
}

Problem without_grad_a(Problem problem) {
  problem.grad_a = false;
  return problem;
}

internal::StaticLimits without(internal::StaticLimits limits, Bytes resident) {
  limits.bytes -= resident.value;
  return limits;
}

// Searches the cuts of GradA in the memory that those of the other passes leave. Returns the plan
// in which GradA has tiles of its own, if it keeps the limits, and adds the cuts that were counted.
std::optional<StaticPlan> plan_apart(const StaticCase& c, internal::StaticSearcher& searcher,
                                     TransposedSearcher& transposed,
                                     const internal::StaticLimits& limits, std::int64_t& counted) {
  const Problem forward_problem = without_grad_a(c.problem);
  const StaticCase forward{forward_problem, c.machine, c.counts};
  const internal::CountedSearch of_forward = searcher.search(forward, limits);
  counted += of_forward.counted;
  if (!of_forward.best) return {};
  const StaticCase alone{c.problem, c.machine, transposed.searcher.counts().counts(), true};
  const internal::CountedSearch of_grad_a =
      transposed.searcher.search(alone, without(limits, of_forward.cost.resident));
  counted += of_grad_a.counted;
  if (!of_grad_a.best) return {};
  const BlockPattern& pattern = searcher.counts().pattern();
  StaticPlan plan =
      internal::plan_of(forward, internal::assignment_of(forward, pattern, *of_forward.best));
  plan.grad_a = internal::assignment_of(alone, transposed.pattern.view(), *of_grad_a.best);
  for (StaticLayout& layout : plan.grad_a->layouts) {
    layout.tile_of = internal::tiles_in_given_order(layout.tile_of, transposed.pattern);
    for (StaticTile& tile : layout.tiles) std::swap(tile.rows, tile.columns);
  }
  plan.cost = internal::plan_cost_of(c, internal::counted_parts(c, plan, pattern));
  return limits.hold(plan.cost) ? std::optional(std::move(plan)) : std::nullopt;
}

// Returns the quick cost of such a plan, if it keeps the limits.
StaticCostResult quick_cost_apart(const StaticCase& c, internal::CutCounts& counts,
                                  internal::CutCounts& transposed,
                                  const internal::StaticLimits& limits) {
  const Problem forward_problem = without_grad_a(c.problem);
  const auto forward =
      internal::quick_search({forward_problem, c.machine, c.counts}, counts, limits);
  if (!forward.best) return {};
  const auto grad_a = internal::quick_search({c.problem, c.machine, transposed.counts(), true},
                                             transposed, without(limits, forward.cost.resident));
  if (!grad_a.best) return {};
  StaticCostResult result{.cost = sum_of(forward.cost, grad_a.cost),
                          .tiles = std::max(forward.best->parts * forward.best->tiles,
                                            grad_a.best->parts * grad_a.best->tiles)};
  if (!limits.hold(*result.cost)) result.cost.reset();
  return result;
}

}  // namespace

struct StaticPlanner::State {
  explicit State(const BlockPattern& pattern) : searcher(pattern) {}

  internal::StaticSearcher searcher;
  std::unique_ptr<TransposedSearcher> transposed = {};  // once it was needed
  std::set<std::pair<bool, bool>> planned = {};  // passes that were planned: with GradA, with GradW

  // Returns true for the first plan of these passes, which is that of plan_static().
  bool is_first_plan(const Problem& problem) {
    return planned.insert({problem.grad_a, problem.grad_w}).second;
  }

  TransposedSearcher& of_transpose() {
    if (!transposed) transposed = std::make_unique<TransposedSearcher>(searcher.counts().pattern());
    return *transposed;
  }
};

StaticPlanner::StaticPlanner(const BlockPattern& pattern) {
  check_places(pattern);
  state_ = std::make_unique<State>(pattern);
}

namespace {

// Returns true if GradA may have tiles of its own.
bool may_part(const Problem& problem, const device::Machine& machine,
              const StaticOptions& options) {
  return problem.grad_a && machine.tiles > 1 && !options.z_parts && !options.bands;
}

}  // namespace

StaticPlanner::~StaticPlanner() = default;
StaticPlanner::StaticPlanner(StaticPlanner&&) noexcept = default;

StaticPlanResult StaticPlanner::plan(const Problem& problem, const device::Machine& machine,
                                     const StaticOptions& options) {
  const DefaultFloatMode mode;
  internal::StaticSearcher& searcher = state_->searcher;
  const BlockPattern& pattern = searcher.counts().pattern();
  if (options.poplibs_parity) return plan_static_as_poplibs(problem, pattern, machine, options);
  check_request(problem, pattern, machine, options);
  const StaticCase c{problem, machine, searcher.counts().counts()};
  if (c.counts.blocks == 0) return {empty_plan(c), "", 0, {}};
  const internal::StaticLimits limits = limits_of(machine, options);
  const internal::CountedSearch found = searcher.search(c, limits);
  std::optional<StaticPlan> plan;
  if (found.best) {
    plan = internal::plan_of(c, internal::assignment_of(c, pattern, *found.best));
    // Cuts are counted with the columns of the largest part; a smaller last one may add more sums.
    plan->cost = c.columns() % found.best->share == 0
                     ? found.cost
                     : internal::plan_cost_of(c, internal::counted_parts(c, *plan, pattern));
    if (!limits.hold(plan->cost)) plan.reset();
  }
  std::int64_t counted = found.counted;
  bool is_first = plan.has_value();
  const auto take_cheaper = [&](std::optional<StaticPlan> other) {
    if (!other || (plan && other->cost.cycles >= plan->cost.cycles)) return;
    plan = std::move(other);
    is_first = false;
  };
  // PopLibs' cut takes a third of the time of a later plan and is rarely the best.
  if (state_->is_first_plan(problem) || !plan) take_cheaper(popsparse_plan(c, pattern, limits));
  if (may_part(problem, machine, options))
    take_cheaper(plan_apart(c, searcher, state_->of_transpose(), limits, counted));
  if (!plan) return {std::nullopt, no_counted_plan(machine, options, found.obstacle), counted, {}};
  constexpr std::size_t kRunnerUps = 5;
  return {std::move(plan), "", counted, internal::runner_ups(found, is_first, kRunnerUps)};
}

StaticCostResult StaticPlanner::quick_cost(const Problem& problem, const device::Machine& machine,
                                           const StaticOptions& options) {
  const DefaultFloatMode mode;
  internal::CutCounts& counts = state_->searcher.counts();
  check_request(problem, counts.pattern(), machine, options);
  if (options.poplibs_parity) throw_invalid("PopLibs' prices have no quick cost; plan with them");
  const StaticCase c{problem, machine, counts.counts()};
  if (c.counts.blocks == 0) return {empty_plan(c).cost, 0, ""};
  const internal::StaticLimits limits = limits_of(machine, options);
  const auto found = internal::quick_search(c, counts, limits);
  StaticCostResult result;
  if (found.best) result = {found.cost, found.best->parts * found.best->tiles, ""};
  if (may_part(problem, machine, options)) {
    auto apart = quick_cost_apart(c, counts, state_->of_transpose().searcher.counts(), limits);
    if (apart.cost && (!result.cost || apart.cost->cycles < result.cost->cycles))
      result = std::move(apart);
  }
  if (!result.cost) result.reason = no_counted_plan(machine, options, found.obstacle);
  return result;
}

StaticPlanResult plan_static(const Problem& problem, const BlockPattern& pattern,
                             const device::Machine& machine, const StaticOptions& options) {
  return StaticPlanner(pattern).plan(problem, machine, options);
}

StaticPlanResult plan_static_as_poplibs(const Problem& problem, const BlockPattern& pattern,
                                        const device::Machine& machine,
                                        const StaticOptions& options) {
  const DefaultFloatMode mode;
  check(problem, pattern, machine, options);
  const StaticCase c{problem, machine, internal::count_blocks(pattern)};
  if (c.counts.blocks == 0) return {empty_plan(c), "", 0, {}};
  const auto found = internal::search_as_poplibs(c, bound_of(machine, options));
  if (!found.best) return {std::nullopt, no_plan(c, options, found.least_bytes), found.prices, {}};
  return {internal::plan_of(c, pattern, *found.best), "", found.prices, {}};
}

PlanCost count_static_cost(const StaticPlan& plan, const Problem& problem,
                           const BlockPattern& pattern, const device::Machine& machine) {
  const DefaultFloatMode mode;
  check(problem, pattern, machine, {});
  check_layouts(plan.layouts, pattern);
  if (plan.grad_a) check_layouts(plan.grad_a->layouts, pattern);
  const StaticCase c{problem, machine, internal::count_blocks(pattern)};
  return internal::plan_cost_of(c, internal::counted_parts(c, plan, pattern));
}

StaticBounds static_bounds(const Problem& problem, const BlockPattern& pattern,
                           const device::Machine& machine) {
  const DefaultFloatMode mode;
  check(problem, pattern, machine, {});
  return internal::bounds_of({problem, machine, internal::count_blocks(pattern)});
}

Cycles static_floor(const Problem& problem, const device::Machine& machine, std::int64_t blocks) {
  const DefaultFloatMode mode;
  check_layer(problem, machine);
  if (blocks < 0) throw_invalid(fmt::format("{} blocks; the number cannot be negative", blocks));
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

std::int64_t StaticAssignment::tiles_used() const {
  std::int64_t tiles = 0;
  for (const StaticPart& part : parts) tiles += std::ssize(layouts[std::size_t(part.layout)].tiles);
  return tiles;
}

namespace {

// Returns the numbers of parts, bands and tiles.
std::string cut_text(const StaticAssignment& cut) {
  return fmt::format("{} part{} of the batch, {} band{}, {} tiles", cut.parts.size(),
                     cut.parts.size() == 1 ? "" : "s", cut.bands.size() - 1,
                     cut.bands.size() == 2 ? "" : "s", cut.tiles_used());
}

}  // namespace

std::string to_string(const StaticPlan& plan) {
  std::string text = fmt::format("static     {}, {}\n", to_string(plan.data_type), cut_text(plan));
  if (plan.grad_a) text += fmt::format("  GradA    {}, of its own\n", cut_text(*plan.grad_a));
  text += fmt::format("cost       {} cycles, {} bytes temporary per tile\n", plan.cost.cycles.value,
                      plan.cost.temp.value);
  for (const PassCost& pass : plan.cost.passes) {
    if (plan.cost.passes.size() > 1)
      text += fmt::format("{:<31} {:>12} cycles\n", to_string(pass.pass), pass.cycles().value);
    text += internal::terms_text(pass);
  }
  return text;
}

}  // namespace tessera::planner
