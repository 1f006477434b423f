#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tessera/planner/solver/value.hpp"

namespace tessera::planner::solver::internal {

struct PriorityOrder {
  std::vector<std::int32_t> rank;  // by group id, 0 first; empty if there is a circle
  std::vector<GroupId> circle;     // groups that all precede each other, by id; empty if none
};

// Groups 0 .. groups - 1 in order of id, each preceded by those that must come before it.
// `priorities` are pairs (first, later). O(groups + pairs).
PriorityOrder order_groups(std::size_t groups,
                           const std::vector<std::pair<GroupId, GroupId>>& priorities);

}  // namespace tessera::planner::solver::internal
