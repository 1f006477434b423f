#pragma once

#include <vector>

#include "tessera/partitioner/internal/holdings.hpp"
#include "tessera/partitioner/internal/leftover.hpp"

namespace tessera::partitioner::internal {

// Which rows of an overfull piece stay at home.
enum class Stay { LongRows, ShortRows };

// Decides whether a pattern fits, and never changes its mind when capacities grow.
//
// Blocks stand in one fixed order. Each home keeps the longest front of its own blocks that fits;
// the rest is poured, in that order, into the buckets that are not overfull, in a fixed order too:
// first inside a cell, then inside an x partition, then anywhere. A bucket that cannot take the
// next block is closed for good.
//
// Why more capacity cannot hurt: with more, every home keeps a longer front, so what is poured is a
// part of what was poured before; every open bucket has at least as much room; and part of a list
// of blocks takes no more room than the list. So after each bucket, pouring has got at least as far
// as before, and the bucket it stops in has at least as much left.
//
// Starts from pieces whole at home. Returns what found no place. O(blocks of overfull pieces).
std::vector<Leftover> fill(Holdings& holdings, Stay stay);

}  // namespace tessera::partitioner::internal
