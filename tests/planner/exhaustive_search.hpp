#pragma once

#include <cstdint>
#include <vector>

#include "tessera/planner/internal/dense_search.hpp"
#include "tessera/planner/internal/planner_search.hpp"

// Searches that price everything, with which tests compare those of the planner.
namespace tessera::planner::internal {

// Prices every legal partition of all cases, whatever Wanted::any says.
Ranking rank_exhaustively(const std::vector<Case>& cases, std::int64_t temp_bound,
                          const Wanted& wanted);

// Prices every cut of a dense pass in the order of search_dense(), in one round and, while none
// keeps the limits of memory, in twice as many, and then in up to four times as many as the first
// that does.
DenseSearch search_dense_exhaustively(const DenseCase& c, const DenseLimits& limits);

}  // namespace tessera::planner::internal
