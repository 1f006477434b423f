#pragma once

#include <cstdint>

#include "tessera/planner/internal/static_expected.hpp"

// The cycles of cuts of static products without a look at the places of the blocks.
namespace tessera::planner::internal {

// A cut of the family that is searched: all parts of the batch have equally many tiles and the same
// layout.
struct CountedCut {
  std::int64_t share = 0;  // columns of a part of the batch; the last part may have fewer
  std::int64_t parts = 1, bands = 1;
  std::int64_t tiles = 1;  // that a part may use
  RunKind runs = RunKind::Even;

  friend auto operator<=>(const CountedCut&, const CountedCut&) = default;
};

// Returns about the cycles of all passes, as if the blocks were spread at random, to tell which
// cuts to count first.
double estimated_cycles(const StaticCase& c, const CountedCut& cut);

// Returns cycles that no layout of the cut falls below in all passes together.
std::int64_t least_cycles(const StaticCase& c, const CountedCut& cut);

// Returns cycles of all passes together that no cut falls below, whatever places the blocks have
// (static_floor()). Of the counts only the number of blocks is used.
Cycles floor_of(const StaticCase& c);

}  // namespace tessera::planner::internal
