#pragma once

#include <cstdint>
#include <functional>

#include "tessera/partitioner/internal/transport.hpp"

namespace tessera::partitioner::internal {

// Calls visit(dx, dy, routing) for every displacement that is enough alone, near ones first, until
// it returns false. O(cells) for each.
void for_each_single_step(
    const Transport& transport,
    const std::function<bool(std::int64_t dx, std::int64_t dy, const Routing& routing)>& visit);

// Returns a lower bound of the steps of any placement; 0 only if every cell can keep all its
// blocks. What any `steps` displacements besides home reach is compared with what must be placed:
//   a cell         its blocks are spread over at most steps + 1 cells, of which its own takes as
//                  many as it can hold
//   x partitions   the fullest k of them reach at most steps + 1 times as many
//   y partitions   displacements along y begin at 0 and have no gaps, so a stretch of neighbours
//                  reaches only `steps` further
//   one step       all displacements are tried
// A set that would have to hold more than it reaches needs more steps. The bound is never too large
// and often too small. O(cells * (partitions along x + steps) + y partitions^2).
std::int64_t least_steps(const Transport& transport);

}  // namespace tessera::partitioner::internal
