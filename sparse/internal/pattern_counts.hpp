#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/pattern_stats.hpp"

namespace tessera::sparse::internal {

// Counts the blocks of a pattern one by one.
class PatternCounts {
 public:
  PatternCounts(std::int64_t block_rows, std::int64_t block_cols, BlockShape block) {
    constexpr std::int64_t kMostBins = 256;  // per side: half a megabyte for the largest matrix
    stats_.block = block;
    stats_.row_counts.resize(static_cast<std::size_t>(block_rows));
    stats_.col_counts.resize(static_cast<std::size_t>(block_cols));
    stats_.bin = {std::max<std::int64_t>(1, ceil_div(block_rows, kMostBins)),
                  std::max<std::int64_t>(1, ceil_div(block_cols, kMostBins))};
    width_ = static_cast<std::size_t>(stats_.bin_cols() + 1);
    stats_.before.assign(static_cast<std::size_t>(stats_.bin_rows() + 1) * width_, 0);
  }

  // The blocks that are added next are in this row.
  void begin_row(std::int64_t row) {
    row_count_ = &stats_.row_counts[static_cast<std::size_t>(row)];
    bins_ = &stats_.before[static_cast<std::size_t>(row / stats_.bin.rows + 1) * width_];
  }

  void add(std::int64_t col) {
    ++*row_count_;
    ++stats_.col_counts[static_cast<std::size_t>(col)];
    ++bins_[col / stats_.bin.cols + 1];
  }

  // Returns the figures, whose bins are summed over all bins to the left and above.
  PatternStats finish() && {
    std::vector<std::int64_t>& before = stats_.before;
    for (std::size_t i = width_; i < before.size(); ++i)
      if (i % width_ != 0) before[i] += before[i - 1] + before[i - width_] - before[i - width_ - 1];
    return std::move(stats_);
  }

 private:
  PatternStats stats_;
  std::size_t width_ = 0;  // of a row of bins
  std::int32_t* row_count_ = nullptr;
  std::int64_t* bins_ = nullptr;
};

}  // namespace tessera::sparse::internal
