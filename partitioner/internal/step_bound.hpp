#pragma once

#include <cstdint>
#include <functional>

#include "tessera/partitioner/internal/transport.hpp"

namespace tessera::partitioner::internal {

// Calls visit(dx, dy, routing) for every displacement that can do alone, near ones first, until it
// returns false. O(cells) for each.
void for_each_single_step(
    const Transport& transport,
    const std::function<bool(std::int64_t dx, std::int64_t dy, const Routing& routing)>& visit);

// No placement has fewer steps: 0 only when every cell may keep what it has. What any `steps`
// displacements beside home reach is compared with what must be placed:
//   a cell         its blocks lie in steps + 1 cells at most, in its own as many as that can hold
//   x partitions   the fullest k of them reach steps + 1 times as many
//   y partitions   displacements along y begin at 0 and have no gaps, so neighbours reach only
//                  `steps` further
//   one step       all displacements are tried
// A set that would have to hold more than it reaches needs more steps. Never too large, often too
// small. O(cells * (partitions along x + steps) + y partitions^2).
std::int64_t least_steps(const Transport& transport);

}  // namespace tessera::partitioner::internal
