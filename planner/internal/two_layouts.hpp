#pragma once

#include "tessera/planner/internal/planner_search.hpp"

namespace tessera::planner::internal {

// The cheapest plan with a layout of its own for GradA: R in its buckets for Fwd, transpose(R) in
// others for GradA, and values that go from one to the other once a training step; GradW on either
// side. NoPlan when none costs less than `fewer_than` cycles, when a tile cannot hold both, or when
// the request speaks of one layout.
PlanResult plan_two_layouts(const Asked& asked, std::int64_t fewer_than, Search search);

}  // namespace tessera::planner::internal
