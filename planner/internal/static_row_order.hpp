#pragma once

#include <cstdint>
#include <vector>

#include "tessera/planner/internal/static_load.hpp"

// Orders of block rows for cuts of static products: tiles take neighbouring rows, and receive a
// column once for all rows that use it.
namespace tessera::planner::internal {

// Returns an order of the block rows in which neighbours share block columns: greedily, each row is
// the one with the largest part of its columns among those of the last rows. Empty if the rows of
// the pattern share hardly more columns in this order than in their own, or if it would take longer
// than the search of a plan. O(rows^2 + sum over columns of blocks^2), both limited.
std::vector<std::int64_t> similar_rows(const BlockPattern& pattern);

// Returns the pattern with its rows in this order.
DerivedPattern with_row_order(const BlockPattern& pattern, const std::vector<std::int64_t>& order);

}  // namespace tessera::planner::internal
