#pragma once

#include <span>

#include "tessera/planner/plan_cache.hpp"
#include "tessera/pod/pod_plan.hpp"
#include "tessera/sparse/checked.hpp"

namespace tessera::pod {

// Plans the devices of a plan again for weights that are known, a matrix for each group. The grid
// stays; devices of one shape get the plan for the fullest of their parts, so buckets have room for
// it and costs are those of the device that the others wait for. A shape whose fullest part has no
// plan keeps the plan that it has.
//
// Throws Error{InvalidArgument} for another number of matrices than the layer has groups, or for
// sizes or blocks that are not the layer's. `cache` is optional and keeps plans of devices.
PodPlan with_pattern(const PodPlan& plan, std::span<const sparse::CheckedCsr<float>> weights,
                     planner::PlanCache* cache = nullptr);

}  // namespace tessera::pod
