#include "tessera/tools/block_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/planner/sparse_below.hpp"
#include "tessera/sparse/block_stats.hpp"

namespace tessera::tools {
namespace {

constexpr std::size_t kMostRemedies = 2;

// The most parts of a batch; more would take longer than any dense layer.
constexpr std::int64_t kMostParts = 64;

double share_of_blocks(const PatternStats& stats) {
  return double(stats.blocks()) /
         (double(stats.row_counts.size()) * double(stats.col_counts.size()));
}

}  // namespace

std::optional<sparse::Csr<double>> load_pattern(LayerArguments& a) {
  if (a.matrix.empty()) return std::nullopt;
  sparse::Csr<double> ones = load_weights(a.matrix, {.keeps_order = false}).matrix;
  std::ranges::fill(ones.values, 1.0);
  a.output_size = ones.rows;
  a.input_size = ones.cols;
  return ones;
}

std::string BlockPlan::name() const { return fmt::format("{}x{}", block.rows, block.cols); }

BlockStudy::BlockStudy(const LayerArguments& arguments, const planner::Options& base)
    : BlockStudy(arguments, problem_of(arguments), make_machine(arguments), base) {}

BlockStudy::BlockStudy(const LayerArguments& arguments, const Problem& problem,
                       const device::Machine& machine, const planner::Options& base)
    : layer_(problem),
      on_no_fit_(arguments.on_no_fit),
      source_(arguments.plan_cache),
      machine_(machine),
      options_(make_options(arguments, base)) {
  if (options_.constraints.use_dense.value_or(false))
    throw Error(ErrorCode::InvalidArgument,
                "planConstraints: useDense is true, but sparse plans are compared with a dense one "
                "here; omit it");
  options_.constraints.use_dense = false;
}

BlockStudy::BlockStudy(const Problem& problem, const device::Machine& machine,
                       const planner::Options& options)
    : layer_(problem), source_({}), machine_(machine), options_(options) {
  options_.constraints.use_dense = false;
}

Problem BlockStudy::problem(BlockShape block, double density) const {
  Problem problem = layer_;
  problem.block = block;
  problem.density = density;
  return problem;
}

BlockPlan BlockStudy::plan_pattern(const sparse::Csr<double>& ones, BlockShape block,
                                   BatchCut cut) {
  const PatternStats stats = sparse::stats_in_blocks(ones, block);
  BlockPlan result{.block = block, .blocks = stats.blocks(), .density = share_of_blocks(stats)};
  if (result.blocks > 0)
    result.filled_percent =
        100 * double(ones.blocks()) / (double(result.blocks) * double(block.area()));
  return planned(std::move(result), &stats, cut);
}

BlockPlan BlockStudy::plan_random(BlockShape block, double density, BatchCut cut) {
  BlockPlan result{.block = block, .density = density, .filled_percent = 100};
  return planned(std::move(result), nullptr, cut);
}

BlockPlan BlockStudy::planned(BlockPlan result, const PatternStats* stats, BatchCut cut) {
  Problem asked = problem(result.block, result.density);
  BlockPlan whole = planned(result, asked, stats);
  if (whole.plan || cut == BatchCut::Whole) return whole;
  const std::int64_t batch = asked.size.z;
  for (std::int64_t parts = 2; parts <= std::min(kMostParts, batch); parts *= 2) {
    asked.size.z = ceil_div(batch, parts);
    BlockPlan part = planned(result, asked, stats);
    if (!part.plan) continue;
    const std::int64_t runs = ceil_div(batch, asked.size.z);
    part.cycles = runs * part.cycles;
    part.note = fmt::format("batch in {} runs of {}", runs, asked.size.z);
    return part;
  }
  return whole;
}

BlockPlan BlockStudy::planned(BlockPlan result, const Problem& asked, const PatternStats* stats) {
  try {
    check_problem(asked);
    planner::PlanResult found = source_.plan(asked, machine_, options_, stats);
    std::optional<planner::Relaxation> relaxation;
    if (!found.has_plan && on_no_fit_ == OnNoFit::BestEffort) {
      planner::BestEffort effort = planner::plan_best_effort(asked, machine_, options_, stats);
      found = std::move(effort.result);
      relaxation = effort.relaxation;
    }
    result.note = found.reason;
    if (!found.has_plan) return result;
    result.cycles = relaxation ? relaxation->total_cycles : found.plan.cost.cycles;
    result.plan = std::move(found.plan);
  } catch (const Error& error) {
    // A combination of block and types that no kernel has concerns this block only.
    if (error.code() != ErrorCode::InvalidArgument) throw;
    result.note = error.what();
  }
  return result;
}

BlockPlan BlockStudy::cheapest(BlockShape block, double density) {
  BlockPlan blocks = plan_random(block, density, BatchCut::PartsIfNeeded);
  if (block.is_element()) return blocks;
  BlockPlan elements = plan_random({1, 1}, density, BatchCut::PartsIfNeeded);
  return elements.plan && (!blocks.plan || elements.cycles < blocks.cycles) ? elements : blocks;
}

bool BlockStudy::may_cost_less(Cycles dense, const sparse::Csr<double>* ones, BlockShape block,
                               BatchCut cut) const {
  if (on_no_fit_ == OnNoFit::BestEffort) return true;
  Problem asked = problem(block, layer_.density);
  std::optional<PatternStats> stats;
  if (ones != nullptr) {
    stats = sparse::stats_in_blocks(*ones, block);
    asked.density = share_of_blocks(*stats);
  }
  const auto below = [&](Cycles cycles) {
    return planner::has_sparse_plan_below(cycles, asked, machine_, options_,
                                          stats ? &*stats : nullptr);
  };
  try {
    check_problem(asked);
    return below(dense) || (cut == BatchCut::PartsIfNeeded && !below(planner::kMostCycles));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::InvalidArgument) throw;
    return false;  // no kernel has this block and these types
  }
}

std::vector<BlockPlan> BlockStudy::cheaper_blocks(Cycles dense, const sparse::Csr<double>* ones,
                                                  BatchCut cut) {
  std::vector<BlockPlan> plans;
  for (const std::int64_t side : kBlockSides) {
    const BlockShape block{side, side};
    if (!may_cost_less(dense, ones, block, cut)) continue;
    plans.push_back(ones != nullptr ? plan_pattern(*ones, block, cut)
                                    : plan_random(block, layer_.density, cut));
  }
  return plans;
}

std::vector<report::Remedy> BlockStudy::remedies(const sparse::Csr<double>* ones) {
  std::vector<report::Remedy> found;
  const std::int64_t batch = layer_.size.z;
  for (const std::int64_t z : {batch, 4 * batch, 16 * batch, batch / 4, batch / 16}) {
    if (z < 1 || z > kLargestBatch) continue;
    layer_.size.z = z;
    const planner::DensePlanResult against = dense();
    if (!against.plan) continue;
    const std::vector<BlockPlan> plans = cheaper_blocks(
        against.plan->cost.cycles, ones, z == batch ? BatchCut::PartsIfNeeded : BatchCut::Whole);
    const BlockPlan* best = cheapest_of(plans);
    if (best == nullptr || best->cycles >= against.plan->cost.cycles) continue;
    const std::string blocks = best->block == layer_.block ? "" : best->name() + " blocks";
    const std::string with = z == batch ? best->note : fmt::format("batch {}", z);
    if (blocks.empty() && with.empty()) continue;  // the plan wins, but the run does not
    found.push_back({blocks + (blocks.empty() || with.empty() ? "" : " and ") + with,
                     double(against.plan->cost.cycles.value) / double(best->cycles.value)});
    if (z == batch || found.size() == kMostRemedies) break;
  }
  layer_.size.z = batch;
  return found;
}

planner::DensePlanResult BlockStudy::dense() const {
  return report::dense_baseline(layer_, machine_, options_);
}

std::int64_t BlockStudy::paying_steps(BlockShape block, Cycles dense, const planner::Plan* like,
                                      std::int64_t from) const {
  const Problem asked = problem(block, layer_.density);
  try {
    check_problem(asked);
    return planner::highest_step_below(dense, asked, machine_, options_, like, from);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::InvalidArgument) throw;
    return from;  // no kernel has this block and these types
  }
}

// Returns whether a batch that has no plan as a whole costs less than `dense` in parts.
bool BlockStudy::pays_in_parts(BlockShape block, Cycles dense, double density) const {
  Problem asked = problem(block, density);
  const auto below = [&](Cycles cycles) {
    return planner::has_sparse_plan_below(cycles, asked, machine_, options_);
  };
  try {
    check_problem(asked);
    const std::int64_t batch = asked.size.z;
    for (std::int64_t parts = 2; parts <= std::min(kMostParts, batch); parts *= 2) {
      if (below(planner::kMostCycles)) return false;  // it has a plan, which costs too much
      asked.size.z = ceil_div(batch, parts);
      if (below(Cycles(ceil_div(dense.value, ceil_div(batch, asked.size.z))))) return true;
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::InvalidArgument) throw;
  }
  return false;
}

double BlockStudy::pays_up_to(BlockShape block, Cycles dense, const planner::Plan* like) {
  const auto cost = [&](double density) -> std::optional<double> {
    const BlockPlan found = cheapest(block, density);
    if (!found.plan) return std::nullopt;
    return double(found.cycles.value);
  };
  if (on_no_fit_ == OnNoFit::BestEffort) return break_even_density(cost, double(dense.value));
  std::int64_t steps = paying_steps(block, dense, like, 0);
  if (!block.is_element()) steps = paying_steps({1, 1}, dense, nullptr, steps);
  const auto in_parts = [&](std::int64_t step) {
    const double density = double(step) / planner::kDensitySteps;
    return pays_in_parts(block, dense, density) || pays_in_parts({1, 1}, dense, density);
  };
  const bool has_end = steps < planner::kDensitySteps;
  if (has_end && in_parts(steps + 1)) return break_even_density(cost, double(dense.value));
  return double(steps) / double(planner::kDensitySteps);
}

report::Outlook outlook_of(const report::DenseComparison& comparison, BlockStudy& study,
                           BlockShape block, const planner::DensePlanResult& dense,
                           const sparse::Csr<double>* ones, const planner::Plan* like) {
  report::Outlook outlook;
  if (!dense.plan) return outlook;
  outlook.pays_up_to = study.pays_up_to(block, dense.plan->cost.cycles, like);
  if (comparison.sparse_wins()) return outlook;
  outlook.is_searched = true;
  outlook.remedies = study.remedies(ones);
  return outlook;
}

const BlockPlan* cheapest_of(const std::vector<BlockPlan>& plans) {
  const BlockPlan* best = nullptr;
  for (const BlockPlan& p : plans)
    if (p.plan && (best == nullptr || p.cycles < best->cycles)) best = &p;
  return best;
}

namespace {

// A density with its cost; infinite if nothing fits or the cost is unknown.
constexpr double kNoCost = std::numeric_limits<double>::infinity();

struct DensityStep {
  std::int64_t step = 0;
  double cost = kNoCost;

  bool has_cost() const { return cost < kNoCost; }
};

// The interval of densities in which the break-even density is: sparse costs less than dense at
// `low` and not at `high`.
class BreakEvenInterval {
 public:
  BreakEvenInterval(double dense, std::int64_t highest)
      : dense_(dense), high_{.step = highest + 1} {}

  bool is_open() const { return high_.step - low_.step > 1; }
  std::int64_t low() const { return low_.step; }

  void add(std::int64_t step, const std::optional<double>& found) {
    if (step <= low_.step || step >= high_.step) return;
    const double cost = found ? *found : kNoCost;
    const bool is_low = cost < dense_;
    // A curved line meets `dense` on one side of the true place again and again.
    push_ = is_low == last_low_ ? std::min(2 * push_, planner::kDensitySteps) : 1;
    last_low_ = is_low;
    (is_low ? low_ : high_) = {step, cost};
  }

  // Returns the density to look at next.
  std::int64_t next() const {
    std::int64_t step = (low_.step + high_.step) / 2;
    if (low_.has_cost() && high_.has_cost() && high_.cost > low_.cost) {
      const double part = (dense_ - low_.cost) / (high_.cost - low_.cost);
      step = low_.step + std::llround(part * double(high_.step - low_.step)) +
             (last_low_ ? push_ : -push_);
    } else if (last_low_ && low_.has_cost() && low_.cost > 0) {
      // The cost of a sparse layer grows more slowly than its density.
      constexpr double kBeyond = 1.25;
      const double growth = std::min(dense_ / low_.cost, 1e3) - 1;
      step = low_.step + std::int64_t(kBeyond * double(low_.step) * growth);
    }
    return std::clamp(step, low_.step + 1, high_.step - 1);
  }

 private:
  double dense_;
  DensityStep low_, high_;
  bool last_low_ = false;
  std::int64_t push_ = 1;
};

}  // namespace

double break_even_density(const std::function<std::optional<double>(double)>& sparse, double dense,
                          const KnownCosts& known) {
  constexpr std::int64_t kSteps = planner::kDensitySteps;
  const auto step_of = [](double density) { return std::llround(density * double(kSteps)); };
  BreakEvenInterval interval(dense, step_of(known.highest));
  for (const auto& [density, cost] : known.points) interval.add(step_of(density), cost);
  if (interval.is_open() && known.points.empty()) {
    const std::int64_t guess = std::clamp<std::int64_t>(
        step_of(known.guess), 1, std::max<std::int64_t>(step_of(known.highest), 1));
    interval.add(guess, sparse(double(guess) / kSteps));
  }
  while (interval.is_open()) {
    const std::int64_t step = interval.next();
    interval.add(step, sparse(double(step) / kSteps));
  }
  return double(interval.low()) / kSteps;
}

}  // namespace tessera::tools
