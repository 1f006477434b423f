#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

namespace tessera::planner::internal {

// The rows of all cells together if the columns of a pattern are cut. Rows and columns are those of
// the tiles' blocks, which divide the layer's block. Memory is linear in the layer's block columns,
// however many blocks the tiles make of each.
class CellRows {
 public:
  // `counts` holds the non-zero blocks of every block row of the layer. Each of these blocks is
  // `down` x `across` blocks of the tiles.
  CellRows(const std::vector<std::int32_t>& counts, std::int64_t down, std::int64_t across);

  // Returns an upper bound of the non-empty rows of all cells if the columns are cut into `parts`
  // parts: the sum of min(blocks of the row, parts) over all rows. Takes any number from 0 on and
  // costs O(1). Example: rows of 2 and 5 blocks give 5 for three parts.
  std::int64_t at(std::int64_t parts) const;

 private:
  std::int64_t down_, across_;
  std::vector<std::int64_t> blocks_of_shorter_;  // [n]: blocks in rows of at most n blocks
  std::vector<std::int64_t> longer_;             // [n]: rows of more than n blocks
};

// The blocks before every row (or column) of the tiles' blocks. The rows within one row of the
// layer's blocks hold equally many, so one sum for each row of the layer suffices.
class RunningSums {
 public:
  // Row i of the layer becomes `parts` rows of counts[i] * times blocks each.
  RunningSums(const std::vector<std::int32_t>& counts, std::int64_t parts, std::int64_t times);

  // Returns the number of rows.
  std::int64_t rows() const { return (std::ssize(sums_) - 1) * parts_; }

  // Returns the blocks in the rows before `row`, which must be in 0 .. rows().
  std::int64_t before(std::int64_t row) const;

  // Returns the largest count in any of `parts` even shares. Costs O(parts).
  std::int64_t fullest_share(std::int64_t parts) const;

 private:
  std::int64_t parts_, times_;
  std::vector<std::int64_t> sums_;  // [i]: sum of the counts before i
};

}  // namespace tessera::planner::internal
