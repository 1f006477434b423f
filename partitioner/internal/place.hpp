#pragma once

#include <cstdint>
#include <vector>

#include "tessera/partitioner/internal/holdings.hpp"
#include "tessera/partitioner/internal/transport.hpp"

namespace tessera::partitioner::internal {

struct Placed {
  bool complete = true;             // true: every block has a place
  std::vector<std::int64_t> unmet;  // [cells] blocks sent to a cell that did not fit there
};

// Carries out a routing with the real capacities of every bucket. Whole rows are preferred, and
// short rows leave first; a row is cut if the amounts of the routing ask for it. Blocks that do not
// fit in the cell they were sent to are put into the nearest bucket with free capacity among the
// displacements of `travel`; if `may_grow`, also beyond them, one y distance after the other at the
// x distances that are visited anyway. Starts from pieces whole at home. O(runs of cells that send
// + records of buckets that take).
Placed place(Holdings& holdings, const Travel& travel, const Routing& routing, bool may_grow);

}  // namespace tessera::partitioner::internal
