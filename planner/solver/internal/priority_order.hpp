#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tessera/planner/solver/value.hpp"

namespace tessera::planner::solver::internal {

struct PriorityOrder {
  std::vector<std::int32_t> rank;  // position by group id, from 0; empty if there is a cycle
  std::vector<GroupId> circle;     // groups of one cycle, by id; empty if there is none
};

// Orders the groups 0 .. groups - 1 by id, each preceded by those that must come before it.
// `priorities` are pairs (first, later). Costs O(groups + pairs) if there is no cycle.
PriorityOrder order_groups(std::size_t groups,
                           const std::vector<std::pair<GroupId, GroupId>>& priorities);

}  // namespace tessera::planner::solver::internal
