#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "tessera/planner/internal/estimate.hpp"

namespace tessera::planner::internal {

inline constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

// What a search must stay below.
struct SearchBounds {
  std::int64_t temp = kUnbounded;       // bytes, inclusive
  std::int64_t cycles = kUnbounded;     // of the best plan so far: only a better one is wanted,
  std::int64_t best_temp = kUnbounded;  // fewer cycles or as many and less temporary memory
  std::int64_t examined = kUnbounded;   // limit
};

struct SearchOutcome {
  bool found = false, limit_reached = false;
  Dims parts;
  std::int64_t cycles = 0, temp = 0;
  std::int64_t evaluations = 0;  // partitions whose cost was computed
  std::int64_t examined = 0;     // partitions and boxes of partitions: what the limit counts
};

// Cost of one partition, or nothing when a limit other than the temporary memory is broken.
struct PartsCost {
  bool legal = false;
  std::int64_t cycles = 0, temp = 0;
};
PartsCost cost_of(const Case& c, Dims parts);

// True when `parts` is a partition the search may choose: every share as small as the counts
// promise, z in equal shares, all on the machine's tiles, pins obeyed.
bool partition_is_legal(const Case& c, Dims parts);

// Every legal partition in ascending order of x, y, z. The truth the other search is tested
// against.
SearchOutcome search_exhaustively(const Case& c, const SearchBounds& bounds);

// The same answer from the constraint solver with lower bounds.
SearchOutcome search_with_solver(const Case& c, const SearchBounds& bounds);

// Calls visit(parts) for every legal partition, in ascending order of x, y, z.
void visit_partitions(const Case& c, const std::function<void(Dims)>& visit);

}  // namespace tessera::planner::internal
