#pragma once

#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/planner.hpp"

namespace tessera::planner::internal {

// Returns true if a request is for R without buckets: useDense is true, operands come from an even
// spread, and nothing is pinned that only buckets have. Other requests with useDense keep R in
// large blocks.
bool wants_no_buckets(const Options& options);

// Returns the plan of a layer that runs a dense plan.
Plan layer_plan(DensePlan dense);

// Plans a layer without buckets (plan_dense), with the layer's type of sums. The status is Found,
// or NoPlan with the reason. Throws the errors of plan().
PlanResult plan_without_buckets(const Problem& problem, const device::Machine& machine,
                                const Options& options, const PatternStats* stats);

}  // namespace tessera::planner::internal
