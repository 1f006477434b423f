#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/problem.hpp"

namespace tessera::distributed {

// The cut of the rows of a matrix into one run for each rank. Rows are elements; a run begins and
// ends with a whole block, but for the last one, which ends with the matrix.
struct RowCut {
  std::vector<std::int64_t> begin = {
      0};  // [ranks + 1] first row of each rank, and the number of rows

  int ranks() const { return int(begin.size()) - 1; }
  std::int64_t rows() const { return begin.back(); }
  Range of(int rank) const { return {begin[std::size_t(rank)], begin[std::size_t(rank) + 1]}; }
  friend bool operator==(const RowCut&, const RowCut&) = default;
};

// Returns the cut with about as many stored blocks in each run: rank i begins with the block row
// that is nearest to i / ranks of all blocks. Without any blocks, rows are counted. `row_begin` has
// the number of blocks before each block row and, last, of all (Csr::row_begin), `rows` is the
// number of rows in elements and `block_rows` the rows of a block. A run may be empty. Throws
// Error{InvalidArgument} unless `ranks` is 1 or more and row_begin begins with 0. O(block rows).
// Example: {0, 6, 7, 8, 10, 12} in two runs is cut behind the first row.
RowCut cut_evenly(std::span<const std::int64_t> row_begin, std::int64_t rows,
                  std::int64_t block_rows, int ranks);

// Returns the cut into runs of as many block rows, for ranks that know nothing of the blocks.
RowCut cut_rows(std::int64_t rows, std::int64_t block_rows, int ranks);

// Throws Error{InvalidArgument} unless the cut is one of `rows` rows into `ranks` runs of whole
// blocks.
void check(const RowCut& cut, std::int64_t rows, std::int64_t block_rows, int ranks);

// The cut of a layer over P ranks. Without any other value than the defaults, R is cut into runs of
// rows: every rank has one run of the rows of Q and of R, and one run of the rows of S. Runs have
// about as many non-zeros each, unless RankLayer::set_rows is given others.
//
// The groups of a layer (Problem::size.g) are dealt to the ranks first. With g groups
//
//   g a multiple of P   a rank has whole groups, and receives nothing
//   P a multiple of g   a group has P / g ranks
//   else                every group is spread over all ranks
//
// and each group is then cut over its ranks as the fields say.
struct Cut {
  // The number of parts of the columns of R, a divisor of the number of ranks of a group; 0 is
  // cheapest_replicas. With 1, no sum crosses ranks. With c > 1 (in the literature: 1.5D) the rows
  // are cut into P / c runs, a rank has one run of one part, and the c ranks of a run add up their
  // partial sums in the order of the parts: many ranks move fewer bytes. Bits depend on c, but not
  // on the number of ranks. In float only.
  int replicas = 1;

  // The number of leaves of the batch; 0: the batch is not cut. With leaves every rank has all
  // weights and the columns of some leaves. Gradients of weights are computed leaf by leaf and
  // added up in one tree (tree_sum.hpp), so their bits depend on the number of leaves, and not on
  // the number of ranks. The batch must be even, because kernels have other last bits for a single
  // column.
  std::int64_t leaves = 0;

  friend bool operator==(const Cut&, const Cut&) = default;
};

// The number of leaves to give a Cut without a reason for another one.
constexpr std::int64_t kLeaves = 16;

// Returns the cut as text, for example "2 replicas of runs of rows".
std::string to_string(const Cut& cut);

// Returns why a layer of this size cannot be cut so over `ranks` ranks, and what to do instead, or
// an empty text if it can. What no layer of ranks takes is not asked here. O(ranks).
std::string why_not(const Cut& cut, const Problem& problem, int ranks);

// Returns the columns of a leaf of a batch. Leaves are pairs of columns, so that no panel of any
// rank ends with a single column.
Range leaf_columns(const Cut& cut, std::int64_t batch, std::int64_t leaf);

// Returns the ranks [begin, end) that have a group of a layer of `groups` groups.
Range ranks_of_group(std::int64_t group, std::int64_t groups, int ranks);

// Returns the values that a rank of a group receives in a pass, on average: with P ranks and c
// replicas y z / c (1 - c / P) of S and x z c / P (1 - 1 / c) of partial sums in Fwd; the same of
// dQ instead of the sums in GradW; and in GradA the same with x and y exchanged, and y z / P more
// if c > 1, unless c * c is P. `replicas` divides `ranks`.
double received_values(const Dims& size, int ranks, int replicas, Pass pass = Pass::Fwd);

// Returns the number of replicas, a divisor of `ranks`, with the fewest received_values in all
// passes of the problem; among equal ones the fewest replicas. It depends on the number of ranks,
// and so do bits if it is used: give a number of your own to keep them.
int cheapest_replicas(const Problem& problem, int ranks);

}  // namespace tessera::distributed
