#pragma once

#include <cstdint>

#include "tessera/planner/internal/layout.hpp"

namespace tessera::planner::internal {

// All partitions with counts in lo .. hi in every dimension.
struct Box {
  Dims lo, hi;
};

// What no legal partition of the box undercuts. `possible` false: no partition of the box is legal.
// Made of sums of bounds that each hold on their own, so it is not tight; a box of one partition
// comes close. Pure, O(1), never allocates.
struct Bound {
  bool possible = true;
  std::int64_t cycles = 0, temp = 0;
};
Bound lower_bound(const Case& c, const Box& box);

}  // namespace tessera::planner::internal
