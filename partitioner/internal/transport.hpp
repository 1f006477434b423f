#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "tessera/partitioner/buckets.hpp"

namespace tessera::partitioner::internal {

// Transport states spilling as a transport problem: blocks must find cells. The z buckets of a cell
// count as one, since every visit serves all of them.
struct Transport {
  Dims splits;                            // only x and y are used
  std::vector<std::int64_t> blocks;       // blocks of the cell, all of them to be placed
  std::vector<std::int64_t> most_in_one;  // of these, the most that one cell can hold
  std::vector<std::int64_t> capacity;     // blocks of any cell that the cell can hold

  // The most blocks of one cell that may be stored at one displacement other than home.
  std::int64_t most_away = std::numeric_limits<std::int64_t>::max();

  std::int64_t cells() const { return static_cast<std::int64_t>(blocks.size()); }

  // The cell whose buckets reach `cell` after dx steps along x and dy along y.
  std::int64_t holder(std::int64_t cell, std::int64_t dx, std::int64_t dy) const {
    const std::int64_t x = (cell / splits.y - dx + splits.x) % splits.x;
    return x * splits.y + (cell % splits.y - dy + splits.y) % splits.y;
  }
};

// A shipment moves blocks of cell `from` to the displacement dx, dy before it, that is to cell
// holder(from, dx, dy).
struct Shipment {
  std::int64_t from = 0, dx = 0, dy = 0, blocks = 0;

  friend bool operator==(const Shipment&, const Shipment&) = default;
};

// A routing lists what leaves its cell, by cell, then distance. Everything else stays at home.
struct Routing {
  std::vector<Shipment> shipments;
  std::int64_t travel = 0;    // sum of blocks * (dx + dy)
  std::int64_t moved = 0;     // sum of blocks
  std::int64_t unplaced = 0;  // blocks without a place; 0 if the routing is complete
};

// Places as many blocks as possible with only the displacements of `travel`, whose y_end[0] must be
// at least 1. Blocks may move on to free capacity for others. Uses maximum flow (Boost.Graph): of
// several possible routings always the same one is returned, but it is not specified which. O(cells
// * displacements) memory; about a millisecond for 1500 cells and one step.
Routing any_routing(const Transport& transport, const Travel& travel);

// Places like any_routing(), with the least travel and, among routings with that travel, the fewest
// moved blocks. Uses successive shortest paths, one for every few blocks that must leave.
Routing cheapest_routing(const Transport& transport, const Travel& travel);

}  // namespace tessera::partitioner::internal
