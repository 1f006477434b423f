#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tessera/partitioner/buckets.hpp"

namespace tessera::partitioner::internal {

// Blocks that must find a cell, as a transport problem. The z buckets of a cell count as one, since
// every visit serves all of them.
struct Transport {
  Dims splits;                            // x and y are used
  std::vector<std::int64_t> blocks;       // [cells] at home in the cell, all of them to be placed
  std::vector<std::int64_t> most_in_one;  // [cells] of these, the most that one cell can hold
  std::vector<std::int64_t> capacity;     // [cells] blocks that the cell can hold, of any cell
  // Of a cell's blocks, the most that may lie at one displacement other than home.
  std::int64_t most_away = std::numeric_limits<std::int64_t>::max();

  std::int64_t cells() const { return static_cast<std::int64_t>(blocks.size()); }
  // The cell whose buckets are home to `cell` after dx steps along x and dy along y.
  std::int64_t holder(std::int64_t cell, std::int64_t dx, std::int64_t dy) const {
    const std::int64_t x = (cell / splits.y - dx + splits.x) % splits.x;
    return x * splits.y + (cell % splits.y - dy + splits.y) % splits.y;
  }
};

// Blocks of cell `from` that lie at dx, dy before it, so in cell holder(from, dx, dy).
struct Shipment {
  std::int64_t from = 0, dx = 0, dy = 0, blocks = 0;

  friend bool operator==(const Shipment&, const Shipment&) = default;
};

// What leaves its cell, by cell, then distance. What is not in it stays at home.
struct Routing {
  std::vector<Shipment> shipments;
  std::int64_t travel = 0;    // sum of blocks * (dx + dy)
  std::int64_t moved = 0;     // sum of blocks
  std::int64_t unplaced = 0;  // blocks without a place; 0: the routing is complete
};

// Places as many blocks as there can be when only the displacements named by `travel` are used;
// its y_end[0] must be at least 1. Blocks may make room for others by moving on themselves.
// By maximum flow (Boost.Graph): which of several routings is not said, but it is always the same.
// O(cells * displacements) memory; about a millisecond for 1500 cells and one step.
Routing any_routing(const Transport& transport, const Travel& travel);

// The same with the least travel and, among these, the fewest moved blocks: successive shortest
// paths, one for every few blocks that must leave.
Routing cheapest_routing(const Transport& transport, const Travel& travel);

}  // namespace tessera::partitioner::internal
