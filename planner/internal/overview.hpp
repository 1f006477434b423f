#pragma once

#include <cstdint>
#include <vector>

#include "tessera/planner/internal/search.hpp"

namespace tessera::planner::internal {

// A partition of a case that keeps a certain set of limits.
struct Found {
  const Case* c = nullptr;  // null if nothing was found
  Dims parts;
  std::int64_t cycles = 0, temp = 0;
};

// The best partitions of all cases. Of equal ones, the first case and then the least counts win, as
// in the search.
struct Overview {
  std::vector<Found> front;    // the best that keep all limits, best first, at most front_size
  std::vector<Found> of_case;  // the best of each case that keeps all limits, by case
  Found without_temp_bound, without_memory, without_words;
  std::int64_t partitions = 0;
};

// Examines every partition of every case. `cases` must outlive the result.
Overview overview(const std::vector<Case>& cases, std::int64_t temp_bound, std::size_t front_size);

}  // namespace tessera::planner::internal
