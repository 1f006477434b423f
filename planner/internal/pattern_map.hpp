#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tessera/base/pattern_stats.hpp"

namespace tessera::planner::internal {

// Non-zero blocks of the fullest cell, where blocks lie evenly in the bins of the statistics.
struct FullestCell {
  double blocks = 0;
  double spread = 0;  // standard deviation of what is not known because cells are cut through bins
  double most = 0;    // with all of every bin it touches: no cell has more
};

// The fullest cell of every cut, from the map in pattern statistics. Answers are kept: not
// thread-safe, made for one plan.
class PatternMap {
 public:
  // Counts blocks of shape `used`, which divides the statistics' block.
  PatternMap(const PatternStats& stats, BlockShape used);

  bool known() const { return !before_.empty(); }
  // O(x_parts * y_parts) the first time.
  FullestCell fullest(std::int64_t x_parts, std::int64_t y_parts);

 private:
  // One dimension's cuts, in bins.
  struct Edges {
    std::vector<std::int64_t> bin;
    std::vector<double> part;  // how far into that bin, [0, 1)
    double uncertain = 0;      // share of a cell's length that lies in bins that are cut
  };
  Edges edges(std::int64_t count, std::int64_t bin, std::int64_t parts) const;
  double unevenness() const;
  std::int64_t most_in_bins(const Edges& rows, const Edges& cols) const;
  double before(const Edges& rows, std::int64_t i, const Edges& cols, std::int64_t j) const;

  std::vector<std::int64_t> before_;  // as in PatternStats
  std::int64_t rows_, cols_;          // of blocks used
  BlockShape bin_;                    // in blocks used
  double together_;                   // used blocks in one of the statistics'
  double unevenness_ = 1;  // variance of a bin's blocks by their mean; 1 for a random pattern
  std::int64_t bin_cols_;
  std::unordered_map<std::int64_t, FullestCell> kept_;  // by x_parts * (cols + 1) + y_parts
};

}  // namespace tessera::planner::internal
