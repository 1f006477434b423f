#pragma once

#include <cstdint>

#include "tessera/planner/internal/boxes.hpp"

namespace tessera::planner::internal {

// A lower bound of the costs of all legal partitions of a box. If `possible` is false, no partition
// of the box is legal. The bound is a sum of bounds that each hold alone, so it is not tight; for a
// box of one partition it is close to the cost. The function is pure, costs O(1) and never
// allocates.
struct Bound {
  bool possible = true;
  std::int64_t cycles = 0, temp = 0;
};
Bound lower_bound(const Case& c, const Box& box);

}  // namespace tessera::planner::internal
