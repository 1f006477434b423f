#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tessera/base/pattern_stats.hpp"

namespace tessera::planner::internal {

// The number of non-zero blocks in the fullest cell, where blocks are assumed to be spread evenly
// within the bins of the statistics.
struct FullestCell {
  double blocks = 0;
  double spread = 0;  // standard deviation of the blocks in bins that edges of cells cut; 0 if a
                      // bin is one block of the statistics, whose parts are known
  double most = 0;  // upper bound: all blocks of every bin that the cell touches
};

// Finds the fullest cell of any cut from the map in pattern statistics. An object keeps its
// answers, so only one thread may use it; it serves one plan.
class PatternMap {
 public:
  // Results are counted in blocks of shape `used`, which divides the statistics' block.
  PatternMap(const PatternStats& stats, BlockShape used);

  bool known() const { return !before_.empty(); }

  // Returns the fullest cell of a cut into x_parts x y_parts cells. Costs O(x_parts * y_parts) the
  // first time.
  FullestCell fullest(std::int64_t x_parts, std::int64_t y_parts);

 private:
  // The cuts of one dimension, as positions in bins.
  struct Edges {
    std::vector<std::int64_t> bin;
    std::vector<double> part;  // position within that bin, [0, 1)
    double uncertain = 0;      // share of a cell's length that is in bins that are cut
  };
  Edges edges(std::int64_t count, std::int64_t bin, std::int64_t parts) const;
  double unevenness() const;
  std::int64_t most_in_bins(const Edges& rows, const Edges& cols) const;
  double before(const Edges& rows, std::int64_t i, const Edges& cols, std::int64_t j) const;

  std::vector<std::int64_t> before_;  // as in PatternStats
  std::int64_t rows_, cols_;          // of blocks used
  BlockShape bin_;                    // in blocks used
  double together_;                   // used blocks in one block of the statistics
  bool bins_are_blocks_;              // each bin is one block of the statistics
  double unevenness_ = 1;             // variance / mean of a bin's blocks; 1 for a random pattern
  std::int64_t bin_cols_;
  std::unordered_map<std::int64_t, FullestCell> kept_;  // by x_parts * (cols + 1) + y_parts
};

}  // namespace tessera::planner::internal
