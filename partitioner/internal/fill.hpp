#pragma once

#include <vector>

#include "tessera/partitioner/internal/holdings.hpp"
#include "tessera/partitioner/internal/leftover.hpp"

namespace tessera::partitioner::internal {

// The rows of an overfull piece that stay at home.
enum class Stay { LongRows, ShortRows };

// Decides whether a pattern fits. A pattern that fits also fits with larger capacities.
//
// Blocks are kept in one fixed order. Each home keeps the longest prefix of its own blocks that
// fits. The rest is poured, in that order, into the buckets that are not overfull, also in a fixed
// order: first inside a cell, then inside an x partition, then anywhere. A bucket that cannot take
// the next block is closed for good.
//
// The proof that more capacity cannot hurt: with more capacity, every home keeps a longer prefix,
// so the poured blocks are a part of those poured before; every open bucket has at least as much
// free capacity; and part of a list of blocks never needs more than the whole list. After each
// bucket, pouring has therefore got at least as far as before, and the bucket in which it stops has
// at least as much left.
//
// Starts from pieces whole at home. Returns the blocks without a place. O(blocks of overfull
// pieces).
std::vector<Leftover> fill(Holdings& holdings, Stay stay);

}  // namespace tessera::partitioner::internal
