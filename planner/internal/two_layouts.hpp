#pragma once

#include <optional>

#include "tessera/planner/internal/planner_search.hpp"

namespace tessera::planner::internal {

// Joins the plans of two layouts, those of two_problems(). Returns nullopt if a tile cannot hold
// both or if temporary memory exceeds its bound.
std::optional<Plan> joined(Plan forward, const Plan& backward, const Problem& problem,
                           const device::Machine& machine, Bytes temp_bound);

// Returns the cheapest plan with a separate layout for GradA: R in the buckets of Fwd, transpose(R)
// in those of GradA, and a move of the values from one to the other once per training step. GradW
// runs on either layout. The status is NoPlan if no such plan costs fewer than `fewer_than` cycles,
// if a tile cannot hold both layouts, or if the request allows only one layout.
PlanResult plan_two_layouts(const Asked& asked, std::int64_t fewer_than, Search search);

}  // namespace tessera::planner::internal
