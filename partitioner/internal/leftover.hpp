#pragma once

#include <cstdint>
#include <vector>

#include "tessera/partitioner/internal/pieces.hpp"

namespace tessera::partitioner::internal {

// Leftover holds runs without a place, from the piece whose home is `bucket`.
struct Leftover {
  std::int64_t bucket = 0;
  std::vector<Run> runs;
};

}  // namespace tessera::partitioner::internal
