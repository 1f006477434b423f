#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"

namespace tessera::distributed {

// Returns part i of `size` things that are cut into parts which differ by one at most.
constexpr Range even_part(std::int64_t size, std::int64_t parts, std::int64_t i) {
  return {size * i / parts, size * (i + 1) / parts};
}

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

}  // namespace tessera::distributed
