#include "tessera/study/static_layer.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/restrict.hpp"
#include "tessera/study/cost_model.hpp"

namespace tessera::study {

template <class T>
sparse::CheckedCsr<T> in_kernel_blocks(const sparse::CheckedCsr<T>& matrix, std::int64_t rows,
                                       std::int64_t cols) {
  const BlockShape block = codelets::static_kernel_block(matrix->block);
  if (block == matrix->block) return matrix;
  const auto elements = sparse::with_block(matrix, BlockShape{1, 1});
  return in_whole_blocks(sparse::cropped(elements, rows, cols), block);
}
template sparse::CheckedCsr<double> in_kernel_blocks(const sparse::CheckedCsr<double>&,
                                                     std::int64_t, std::int64_t);
template sparse::CheckedCsr<float> in_kernel_blocks(const sparse::CheckedCsr<float>&, std::int64_t,
                                                    std::int64_t);

std::string kernel_block_note(BlockShape block) {
  const BlockShape run = codelets::static_kernel_block(block);
  if (run == block) return {};
  return fmt::format("no static kernel has {}x{} blocks; they run as {}", block.rows, block.cols,
                     run.is_element() ? "elements" : fmt::format("{0}x{0} blocks", run.rows));
}

Problem with_static_sums(Problem problem) {
  const bool half_sums = problem.data_type == DataType::Half && !problem.block.is_element();
  problem.partials_type = half_sums ? DataType::Half : DataType::Float;
  return problem;
}

planner::StaticPlanResult plan_static_or_throw(const Problem& problem,
                                               const planner::BlockPattern& pattern,
                                               const device::Machine& machine,
                                               const planner::StaticOptions& options) {
  auto result = planner::plan_static(problem, pattern, machine, options);
  if (!result.plan) throw Error(ErrorCode::NoSolution, result.reason);
  return result;
}

std::string dynamic_comparison(Cycles cycles, const Problem& problem,
                               const device::Machine& machine, const PatternStats& stats) {
  const auto dynamic = planner::plan(problem, machine, planner::sparse_options(), &stats);
  if (!dynamic.has_plan) return "no plan fits for patterns that may change";
  const Cycles other = dynamic.plan.cost.cycles;
  return fmt::format("a plan for patterns that may change takes {} cycles, {:.2f} times as many",
                     other.value, double(other.value) / double(cycles.value));
}

}  // namespace tessera::study
