#pragma once

#include "tessera/planner/internal/dense_search.hpp"
#include "tessera/planner/internal/search.hpp"

// Searches that price everything, with which tests compare those of the planner.
namespace tessera::planner::internal {

// Searches every legal partition in ascending order of x, y, z, and keeps the cheapest ones within
// the bounds; of equal ones, the first. Does not know `examined` and `any` of the bounds.
SearchOutcome search_exhaustively(const Case& c, const SearchBounds& bounds);

// Prices every cut of a dense pass in the order of search_dense(), in one round and, while none
// keeps the limits of memory, in twice as many, and then in up to four times as many as the first
// that does.
DenseSearch search_dense_exhaustively(const DenseCase& c, const DenseLimits& limits);

}  // namespace tessera::planner::internal
