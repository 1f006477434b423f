#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "tessera/planner/internal/estimate.hpp"

namespace tessera::planner::internal {

inline constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

// A limit that no cost reaches, for a search that need not say why nothing fits.
inline constexpr std::int64_t kAnyCycles = kUnbounded - 1;

// The limits within which a search looks for a partition.
struct SearchBounds {
  std::int64_t temp = kUnbounded;       // bytes, inclusive
  std::int64_t cycles = kUnbounded;     // of the best plan so far; a better one has fewer
  std::int64_t best_temp = kUnbounded;  // cycles, or as many and less temporary memory
  std::int64_t examined = kUnbounded;   // largest number of examined partitions and boxes
  std::int64_t count = 1;               // number of partitions to find, at least 1
  bool any = false;                     // the first partition within these bounds ends the search
};

// A partition and its cost.
struct PricedParts {
  Dims parts;
  std::int64_t cycles = 0, temp = 0;
};

// Returns true if a partition costs fewer cycles, or as many and less temporary memory.
bool is_better(const PricedParts& a, std::int64_t cycles, std::int64_t temp);

struct SearchOutcome {
  std::vector<PricedParts> found;  // the cheapest first; at most SearchBounds::count
  bool limit_reached = false;
  std::int64_t evaluations = 0;  // partitions whose cost was computed
  std::int64_t examined = 0;     // partitions and boxes of partitions, as counted by the limit
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

// Finds the cheapest legal partitions within the bounds; of equal ones, the first in ascending
// order of x, y, z. Leaves out boxes of partitions by their lower bounds. Tests compare it with a
// search of every partition.
SearchOutcome search_by_bounds(const Case& c, const SearchBounds& bounds);

// Calls visit(parts) for every legal partition, in ascending order of x, y, z.
void visit_partitions(const Case& c, const std::function<void(Dims)>& visit);

}  // namespace tessera::planner::internal
