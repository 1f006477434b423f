#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/base/pattern_stats.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/static_explain.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"

// Layers whose pattern stays.
namespace tessera::study {

// Returns the places of the blocks of a matrix, which must outlive the result.
template <class T>
planner::BlockPattern block_pattern(const sparse::Csr<T>& matrix) {
  return {matrix.block, matrix.block_rows(), matrix.block_cols(), matrix.row_begin, matrix.col};
}

// Returns the weights of a layer of `rows` x `cols` in blocks that have a static kernel
// (codelets::static_kernel_block). The matrix, which may be larger, is shared if it has such blocks
// already.
template <class T>
sparse::CheckedCsr<T> in_kernel_blocks(const sparse::CheckedCsr<T>& matrix, std::int64_t rows,
                                       std::int64_t cols);

// Returns a note on blocks that run as smaller ones; empty if there is a kernel for them.
std::string kernel_block_note(BlockShape block);

// Returns the problem with the sums that a static layer has: on a tile, blocks of half are summed
// in half and everything else in float.
Problem with_static_sums(Problem problem);

// Plans the problem. Throws Error{NoSolution} with the reason if there is no plan.
planner::StaticPlanResult plan_static_or_throw(const Problem& problem,
                                               const planner::BlockPattern& pattern,
                                               const device::Machine& machine,
                                               const planner::StaticOptions& options);

// A layer whose pattern stays, with its plan and what it is compared with.
struct StaticAnswer {
  Problem problem;
  device::Machine machine;
  std::vector<std::string> notes;
  planner::StaticPlanResult result;                       // which has a plan
  std::optional<planner::StaticExplanation> explanation;  // if it was asked for
};

// Plans the layer of a pattern of elements in the blocks of the problem, whose sizes and density
// are those of the pattern. Throws Error{NoSolution} if no plan fits.
StaticAnswer plan_static_layer(Problem problem, const sparse::Csr<double>& elements,
                               const device::Machine& machine,
                               const planner::StaticOptions& options, bool explain);

// Returns the plan and its explanation, as text or as JSON with the members problem, machine,
// notes, plan and explanation. `plan` is planner::to_json() of the plan.
std::string to_text(const StaticAnswer& answer);
std::string to_json(const StaticAnswer& answer);

// Returns the comparison of cycles with a plan for patterns that may change, as a sentence without
// an end. `stats` has the pattern.
std::string dynamic_comparison(Cycles cycles, const Problem& problem,
                               const device::Machine& machine, const PatternStats& stats);

}  // namespace tessera::study
