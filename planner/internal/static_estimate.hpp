#pragma once

#include <algorithm>
#include <cstdint>

#include "tessera/base/int_math.hpp"
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

// Calls visit(cut) for every share of the batch, with all tiles for its parts and the default of
// everything else.
template <class Visit>
void for_each_share(const StaticCase& c, const Visit& visit) {
  const std::int64_t grains = c.columns() / c.grain();
  for (std::int64_t asked = 1; asked <= std::min(grains, c.machine.tiles); ++asked) {
    const std::int64_t each = ceil_div(grains, asked), parts = ceil_div(grains, each);
    visit(CountedCut{.share = each * c.grain(), .parts = parts, .tiles = c.machine.tiles / parts});
  }
}

// Returns the cycles of the kernel for a share of columns on a tile with so many blocks in one row,
// which no tile with as many blocks falls below.
std::int64_t least_kernel_cycles(const StaticCase& c, std::int64_t share, std::int64_t blocks);

// Returns about the cycles of all passes, as if the blocks were spread at random, to tell which
// cuts to count first.
double estimated_cycles(const StaticCase& c, const CountedCut& cut);

// Returns cycles that no layout of the cut falls below in all passes together.
std::int64_t least_cycles(const StaticCase& c, const CountedCut& cut);

// Returns cycles of all passes together that no cut falls below, whatever places the blocks have
// (static_floor()). Of the counts only the number of blocks is used.
Cycles floor_of(const StaticCase& c);

}  // namespace tessera::planner::internal
