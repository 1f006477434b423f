#pragma once

#include <cstdint>
#include <vector>

#include "tessera/partitioner/internal/holdings.hpp"
#include "tessera/partitioner/internal/transport.hpp"

namespace tessera::partitioner::internal {

struct Placed {
  bool complete = true;             // every block has a place
  std::vector<std::int64_t> unmet;  // [cells] blocks that a cell was to take and had no room for
};

// Carries out a routing with the real room of every bucket. Whole rows are preferred, short ones
// leave first; a row is cut where the routing's amounts ask for it. What has no room where it was
// sent goes to the nearest bucket that has, among the displacements of `travel`; if `may_grow`,
// also beyond them, one y distance after the other at the x distances that are visited anyway.
// Starts from pieces whole at home. O(runs of cells that send + records of buckets that take).
Placed place(Holdings& holdings, const Travel& travel, const Routing& routing, bool may_grow);

}  // namespace tessera::partitioner::internal
