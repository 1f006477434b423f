#pragma once

#include <string>

#include "tessera/base/pattern_stats.hpp"
#include "tessera/planner/options.hpp"
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

// Returns the comparison of cycles with a plan for patterns that may change, as a sentence without
// an end. `stats` has the pattern.
std::string dynamic_comparison(Cycles cycles, const Problem& problem,
                               const device::Machine& machine, const PatternStats& stats);

}  // namespace tessera::study
