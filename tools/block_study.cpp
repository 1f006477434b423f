#include "tessera/tools/block_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/tools/dense_verdict.hpp"

namespace tessera::tools {

std::optional<sparse::Csr<double>> load_pattern(LayerArguments& a) {
  if (a.matrix.empty()) return std::nullopt;
  sparse::Csr<double> ones = load_weights(a.matrix).matrix;
  std::ranges::fill(ones.values, 1.0);
  a.output_size = ones.rows;
  a.input_size = ones.cols;
  return ones;
}

std::string BlockPlan::name() const { return fmt::format("{}x{}", block.rows, block.cols); }

BlockStudy::BlockStudy(LayerArguments arguments, const planner::Options& base)
    : arguments_(std::move(arguments)),
      source_(arguments_.plan_cache),
      machine_(make_machine(arguments_)),
      options_(make_options(arguments_, base)) {
  if (options_.constraints.use_dense.value_or(false))
    throw Error(ErrorCode::InvalidArgument,
                "planConstraints: useDense is true, but sparse plans are compared with a dense one "
                "here; omit it");
  options_.constraints.use_dense = false;
}

Problem BlockStudy::problem(BlockShape block, double density) const {
  Problem problem = problem_of(arguments_);
  problem.block = block;
  problem.density = density;
  return problem;
}

BlockPlan BlockStudy::plan_pattern(const sparse::Csr<double>& ones, BlockShape block) {
  const sparse::Csr<double> in_blocks = in_whole_blocks(ones, block);
  const double places = double(in_blocks.block_rows()) * double(in_blocks.block_cols());
  BlockPlan result{
      .block = block, .blocks = in_blocks.blocks(), .density = double(in_blocks.blocks()) / places};
  if (result.blocks > 0)
    result.filled_percent =
        100 * double(ones.blocks()) / (double(result.blocks) * double(block.area()));
  const PatternStats stats = sparse::pattern_stats(in_blocks);
  return planned(std::move(result), &stats);
}

BlockPlan BlockStudy::plan_random(BlockShape block, double density) {
  BlockPlan result{.block = block, .density = density, .filled_percent = 100};
  return planned(std::move(result), nullptr);
}

BlockPlan BlockStudy::planned(BlockPlan result, const PatternStats* stats) {
  const Problem asked = problem(result.block, result.density);
  try {
    check_problem(asked);
    planner::PlanResult found = source_.plan(asked, machine_, options_, stats);
    std::optional<planner::Relaxation> relaxation;
    if (!found.has_plan && arguments_.on_no_fit == OnNoFit::BestEffort) {
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

std::optional<Cycles> BlockStudy::cheapest_cycles(BlockShape block, double density) {
  std::optional<Cycles> best;
  const auto add = [&](BlockShape form) {
    const BlockPlan found = plan_random(form, density);
    if (found.plan && (!best || found.cycles < *best)) best = found.cycles;
  };
  add(block);
  if (!block.is_element()) add({1, 1});
  return best;
}

planner::DensePlanResult BlockStudy::dense() const {
  Problem layer = problem({1, 1}, 1);
  layer.partials_type = DataType::Float;  // legal for every data type; dense sums have their own
  return dense_baseline(layer, machine_, options_);
}

double BlockStudy::pays_up_to(BlockShape block, Cycles dense) {
  const auto cycles = [&](double density) -> std::optional<double> {
    const auto found = cheapest_cycles(block, density);
    if (!found) return std::nullopt;
    return double(found->value);
  };
  return break_even_density(cycles, double(dense.value));
}

const BlockPlan* cheapest_of(const std::vector<BlockPlan>& plans) {
  const BlockPlan* best = nullptr;
  for (const BlockPlan& p : plans)
    if (p.plan && (best == nullptr || p.cycles < best->cycles)) best = &p;
  return best;
}

double break_even_density(const std::function<std::optional<double>(double)>& sparse,
                          double dense) {
  std::int64_t low = 0, high = 1000;
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    const auto cost = sparse(double(middle) / 1000);
    if (cost && *cost < dense)
      low = middle;
    else
      high = middle - 1;
  }
  return double(low) / 1000;
}

}  // namespace tessera::tools
