#pragma once

#include "tessera/planner/internal/static_counted_search.hpp"

namespace tessera::planner::internal {

// Moves blocks of a plan off the slowest tiles, as long as that makes all passes cheaper and keeps
// the limits. Each block of the slowest tile is tried on the tiles that have its row or its column,
// and on one more tile if there is one; on up to eight tiles all blocks are tried on every tile,
// and in pairs. Changes plans in which all parts of the batch have the same layout and GradA no
// tiles of its own. Every trial counts the whole plan, so there are the fewer of them the more
// blocks there are: some hundred for ten blocks, none for ten thousand. Returns the number of
// blocks that it moved. Deterministic.
std::int64_t move_blocks(const StaticCase& c, const BlockPattern& pattern,
                         const StaticLimits& limits, StaticPlan& plan);

}  // namespace tessera::planner::internal
