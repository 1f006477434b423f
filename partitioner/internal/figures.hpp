#pragma once

#include <compare>
#include <cstdint>

#include "tessera/partitioner/internal/holdings.hpp"

namespace tessera::partitioner::internal {

// How good a placement is: less is better, and what comes first counts more.
struct Figures {
  std::int64_t steps = 0;      // displacements visited beyond home
  std::int64_t travel = 0;     // sum over moved blocks of the partitions they are away, x and y
  std::int64_t row_parts = 0;  // rows of all records

  auto operator<=>(const Figures&) const = default;
};

// O(buckets + guests).
Figures figures_of(const Holdings& holdings);

}  // namespace tessera::partitioner::internal
