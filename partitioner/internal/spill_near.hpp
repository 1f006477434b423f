#pragma once

#include <vector>

#include "tessera/partitioner/internal/holdings.hpp"
#include "tessera/partitioner/internal/leftover.hpp"

namespace tessera::partitioner::internal {

// Moves what does not fit at home to the nearest buckets with free capacity: first inside the cell,
// then inside the x partition, then anywhere; in each of these first by whole rows, then by cut
// rows; biggest leftovers first. Nearest means the fewest steps along x, then along y, on the way
// home. `forced` is a test mode: every piece leaves its bucket and never comes back, buckets are
// tried upwards from the next one, and x partitions are tried after all others.
//
// Starts from pieces whole at home. Returns the blocks without a place. Unlike fill() it may fail
// although it succeeds with smaller capacities, because blocks that it puts near leave less
// capacity there for others. O(buckets^2) at the worst, and O(rows of a leftover) for each bucket
// that takes some of it.
std::vector<Leftover> spill_near(Holdings& holdings, bool forced);

}  // namespace tessera::partitioner::internal
