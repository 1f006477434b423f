#pragma once

#include <compare>
#include <cstdint>

#include "tessera/partitioner/internal/holdings.hpp"

namespace tessera::partitioner::internal {

// Figures compare placements: less is better, and earlier fields count more.
struct Figures {
  std::int64_t steps = 0;      // displacements visited beyond home
  std::int64_t travel = 0;     // over moved blocks: partitions away from home, x and y
  std::int64_t row_parts = 0;  // rows of all records

  auto operator<=>(const Figures&) const = default;
};

// Returns the figures of a placement. O(buckets + guests).
Figures figures_of(const Holdings& holdings);

}  // namespace tessera::partitioner::internal
