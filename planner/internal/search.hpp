#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "tessera/planner/internal/estimate.hpp"

namespace tessera::planner::internal {

inline constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

// A limit that no cost reaches, for a search that need not say why nothing fits.
inline constexpr std::int64_t kAnyCycles = kUnbounded - 1;

// A partition and its cost.
struct PricedParts {
  Dims parts;
  std::int64_t cycles = 0, temp = 0;
};

// The cost of one partition. `legal` is false if it breaks a limit other than that on temporary
// memory; the costs are then 0.
struct PartsCost {
  bool legal = false;
  std::int64_t cycles = 0, temp = 0;
};
PartsCost cost_of(const Case& c, Dims parts);

// Returns true if the search may choose `parts`: every count is the smallest for its share size,
// the counts obey the pins, and the partition fits on the machine's tiles. Under
// Options::poplibs_parity the count of z also divides the grains of the batch.
bool partition_is_legal(const Case& c, Dims parts);

// Calls visit(parts) for every legal partition, in ascending order of x, y, z.
void visit_partitions(const Case& c, const std::function<void(Dims)>& visit);

}  // namespace tessera::planner::internal
