#pragma once

#include <span>

#include "tessera/planner/plan_cache.hpp"
#include "tessera/pod/pod_plan.hpp"
#include "tessera/sparse/checked.hpp"

namespace tessera::pod {

// Plans the devices of a plan again for weights that are known, a matrix for each group. The grid
// stays; devices of one shape get the cut of the fullest of their parts, and buckets with room for
// all of them (for the 64 fullest, if there are more), so costs are those of the device that the
// others wait for, up to the estimates of the planner. A shape whose fullest part has no
// plan keeps the plan that it has.
//
// Throws Error{InvalidArgument} for another number of matrices than the layer has groups, or for
// sizes or blocks that are not the layer's. `cache` is optional and keeps plans of devices.
PodPlan with_pattern(const PodPlan& plan, std::span<const sparse::CheckedCsr<float>> weights,
                     planner::PlanCache* cache = nullptr);

}  // namespace tessera::pod
