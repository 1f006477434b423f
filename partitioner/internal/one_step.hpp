#pragma once

#include "tessera/partitioner/internal/transport.hpp"

namespace tessera::partitioner::internal {

// The routing with the least travel that uses home and one other displacement, or, with unplaced
// above 0, the word that there is none. Cells that one displacement joins lie on rings, and each
// sends on at least what it cannot hold with what it is sent: sums around the rings say how much,
// with no flow to be searched. O(cells).
Routing one_step_routing(const Transport& transport, std::int64_t dx, std::int64_t dy);

}  // namespace tessera::partitioner::internal
