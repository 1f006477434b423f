#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera {

// The figures of a pattern that a planner uses in place of the matrix. Counts are in blocks.
struct PatternStats {
  BlockShape block;
  std::vector<std::int32_t> row_counts;  // non-zero blocks in each block row
  std::vector<std::int32_t> col_counts;  // non-zero blocks in each block column

  // Optional: the distribution of the blocks over bins of `bin` blocks; the last bin of a direction
  // may be smaller. before[i][j] is the number of blocks in the first i bin rows and the first j
  // bin columns.
  BlockShape bin;
  std::vector<std::int64_t> before;  // [bin rows + 1][bin columns + 1], or empty

  friend bool operator==(const PatternStats&, const PatternStats&) = default;
  std::int64_t blocks() const {
    std::int64_t sum = 0;
    for (const std::int32_t n : row_counts) sum += n;
    return sum;
  }
  std::int64_t bin_rows() const { return ceil_div(std::ssize(row_counts), bin.rows); }
  std::int64_t bin_cols() const { return ceil_div(std::ssize(col_counts), bin.cols); }
};

}  // namespace tessera
