#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/block_shape.hpp"

namespace tessera {

// What a planner may know of a pattern without seeing the matrix. Counts are in blocks.
struct PatternStats {
  BlockShape block;
  std::vector<std::int32_t> row_counts;  // non-zero blocks in each block row
  std::vector<std::int32_t> col_counts;  // non-zero blocks in each block column

  friend bool operator==(const PatternStats&, const PatternStats&) = default;
  std::int64_t blocks() const {
    std::int64_t sum = 0;
    for (const std::int32_t n : row_counts) sum += n;
    return sum;
  }
};

}  // namespace tessera
