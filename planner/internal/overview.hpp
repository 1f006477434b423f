#pragma once

#include <cstdint>
#include <vector>

#include "tessera/planner/internal/search.hpp"

namespace tessera::planner::internal {

// A partition of a case that keeps some set of limits.
struct Found {
  const Case* c = nullptr;  // nothing was found
  Dims parts;
  std::int64_t cycles = 0, temp = 0;
};

// The best partitions of all cases. Equal ones go to the first case and the least counts, as in the
// search.
struct Overview {
  std::vector<Found> front;    // the best that keep all limits, in order, at most as many as asked
  std::vector<Found> of_case;  // the best of each case that keeps all limits
  Found without_temp_bound, without_memory, without_words;
  std::int64_t partitions = 0;
};

// Looks at every partition. `cases` must outlive the result.
Overview overview(const std::vector<Case>& cases, std::int64_t temp_bound, std::size_t front_size);

}  // namespace tessera::planner::internal
