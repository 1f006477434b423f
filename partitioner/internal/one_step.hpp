#pragma once

#include "tessera/partitioner/internal/transport.hpp"

namespace tessera::partitioner::internal {

// Returns the routing with the least travel that uses home and one other displacement. If there is
// none, `unplaced` is above 0. The cells that one displacement joins form rings, and each cell
// sends on at least the part of its own and received blocks that it cannot hold. Sums around the
// rings give these amounts, so no flow has to be searched. O(cells).
Routing one_step_routing(const Transport& transport, std::int64_t dx, std::int64_t dy);

}  // namespace tessera::partitioner::internal
