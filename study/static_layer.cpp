#include "tessera/study/static_layer.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/json/value.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/restrict.hpp"
#include "tessera/study/cost_model.hpp"

namespace tessera::study {
namespace {

using Json = json::Value;

}  // namespace

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

StaticAnswer plan_static_layer(Problem problem, const sparse::Csr<double>& elements,
                               const device::Machine& machine,
                               const planner::StaticOptions& options, bool explain) {
  const sparse::Csr<double> given = in_whole_blocks(elements, problem.block);
  const auto matrix = in_kernel_blocks(sparse::checked(given), elements.rows, elements.cols);
  StaticAnswer answer{.machine = machine};
  if (const std::string note = kernel_block_note(problem.block); !note.empty())
    answer.notes.push_back(note);
  problem.size.x = elements.rows;
  problem.size.y = elements.cols;
  problem.block = matrix->block;
  problem.density = double(matrix->blocks()) / places_of(problem, problem.block);
  answer.problem = with_static_sums(problem);
  const planner::BlockPattern pattern = block_pattern(*matrix);
  answer.result = plan_static_or_throw(answer.problem, pattern, machine, options);
  if (!options.poplibs_parity && matrix->blocks() > 0)
    answer.notes.push_back(dynamic_comparison(answer.result.plan->cost.cycles, answer.problem,
                                              machine, sparse::pattern_stats(*matrix)));
  if (explain)
    answer.explanation = planner::explain_static(answer.problem, pattern, machine, options);
  return answer;
}

std::string to_text(const StaticAnswer& answer) {
  std::string text;
  for (const std::string& note : answer.notes) text += fmt::format("note       {}\n", note);
  text +=
      fmt::format("layer      {}\nmachine    {}: {} tiles of {} bytes\n{}",
                  to_string(answer.problem), printable(answer.machine.name), answer.machine.tiles,
                  answer.machine.tile_memory.value, to_string(*answer.result.plan));
  if (answer.explanation) text += "\n" + planner::to_text(*answer.explanation, answer.result);
  return text;
}

std::string to_json(const StaticAnswer& answer) {
  const Json layer =
      json::parse_own(planner::plan_to_json({answer.problem, answer.machine, {}, {}}));
  Json document{{"problem", layer.at("problem")},
                {"machine", layer.at("machine")},
                {"notes", answer.notes},
                {"plan", json::parse_own(planner::to_json(*answer.result.plan))}};
  if (answer.explanation)
    document["explanation"] = json::parse_own(planner::to_json(*answer.explanation, answer.result));
  return document.dump(2) + "\n";
}

}  // namespace tessera::study
