#pragma once

#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/planner.hpp"

namespace tessera::planner::internal {

// Returns true if a request may be met without buckets: useDense is true or open, operands come
// from an even spread, and nothing is asked for that only buckets have.
bool may_have_no_buckets(const Options& options);

// Returns true if a request is for R without buckets: it may be met so, and useDense is true. Other
// requests with useDense keep R in large blocks.
bool wants_no_buckets(const Options& options);

// Does the work of plan_dense() for plans with fewer cycles than `fewer_than`. If there is none,
// the reason is empty, and finding that out is cheap where dense is far from it: floors of the
// passes are tried before any search.
DensePlanResult plan_dense_below(const Problem& problem, const device::Machine& machine,
                                 const DenseOptions& options, std::int64_t fewer_than);

// Returns a bound of the cycles of plan_dense(), found without a search. O(tiles).
std::int64_t floor_without_buckets(const Problem& problem, const device::Machine& machine,
                                   const DenseOptions& options);

// Returns the plan of a layer that runs a dense plan.
Plan layer_plan(DensePlan dense);

// Plans a layer without buckets, with the layer's type of sums and with fewer cycles than
// `fewer_than`. The status is Found, or NoPlan with the reason, which is empty if plans cost too
// much. Throws the errors of plan().
PlanResult plan_without_buckets(const Asked& asked, std::int64_t fewer_than = kUnbounded);

}  // namespace tessera::planner::internal
