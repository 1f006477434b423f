#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "tessera/planner/internal/static_load.hpp"

// The counts of cuts of one pattern. They depend on neither batch nor machine, so they are kept
// from one search to the next.
namespace tessera::planner::internal {

// The part of a cut that decides which tile of a part has which block.
struct BlockCut {
  std::int64_t bands = 1, tiles = 1;
  RunKind runs = RunKind::Even;

  friend auto operator<=>(const BlockCut&, const BlockCut&) = default;
};

// The counts of a layout, and those with rows and columns exchanged if they were asked for.
struct CutLoads {
  StaticLoad load;
  std::optional<StaticLoad> transposed;
};

// Returns the blocks of each tile. Empty if there are fewer tiles than bands.
StaticRuns runs_of(const BandedRows& rows, std::int64_t tiles, RunKind kind);

// Counts cuts and keeps what it counted, up to a number of rows of tiles, which take 16 bytes each.
// One thread may use it at a time.
class CutCounts {
 public:
  // The arrays of `pattern` must outlive the object.
  explicit CutCounts(const BlockPattern& pattern, std::int64_t most_kept = std::int64_t{1} << 21);

  const BlockPattern& pattern() const { return pattern_; }
  const StaticCounts& counts() const { return counts_; }

  // Returns the counts of a cut, which are valid until the next call; nullptr if there are fewer
  // tiles than bands.
  const CutLoads* loads(const BlockCut& cut, bool with_transposed);

 private:
  const BandedRows& banded(std::int64_t bands);
  CutLoads counted(const BlockCut& cut, bool with_transposed);

  BlockPattern pattern_;
  StaticCounts counts_;
  std::optional<BlockLines> by_column_;  // once it was needed
  std::map<std::int64_t, BandedRows> banded_;
  std::map<BlockCut, CutLoads> kept_;
  std::int64_t most_kept_, kept_entries_ = 0;  // rows of tiles in `kept_`
  CutLoads last_;                              // if it is not kept
};

}  // namespace tessera::planner::internal
