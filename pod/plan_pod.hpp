#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tessera/planner/plan_cache.hpp"
#include "tessera/pod/pod_plan.hpp"
#include "tessera/sparse/checked.hpp"

namespace tessera::pod {

// The counts of parts that a caller fixes; the planner searches those that are empty.
struct GridPins {
  std::optional<std::int64_t> g, x, y, z;  // 1 .. devices

  friend bool operator==(const GridPins&, const GridPins&) = default;
};

// The result of a search for a grid.
struct PodResult {
  std::optional<PodPlan> plan;    // the fastest one; empty: see `reason`
  std::string reason;             // why no grid fits
  std::int64_t grids = 0;         // counts of parts that were looked at
  std::int64_t device_plans = 0;  // searches for the plan of a device
};

// Plans a layer for a pod: a grid of parts over its devices, or over some of them, jointly with the
// plan of each device. Returns the plan with the least time of all passes; among equal ones, the
// first by an order of the grids that is fixed.
//
// A grid has any parts on a level with up to 64 devices, and parts whose product divides the
// level's devices on larger ones. Its axes are laid out along each level in the cheapest order, and
// each collective runs on each level by its cheapest algorithm. The batch runs in 1, 2, 4, ...
// serial parts: more than one if a device cannot hold its part of the layer otherwise, or only by a
// slower plan.
//
// Grids whose collectives, together with a floor of the cycles of their devices, take as long as
// the best grid are not planned. `cache` is optional and keeps plans of devices.
//
// Throws Error{InvalidArgument} if the problem, the pod, an option or a pin is invalid. The result
// is deterministic. Any number of threads may call it.
PodResult plan_pod(const Problem& problem, const device::Pod& pod,
                   const planner::Options& options = {}, const GridPins& pins = {},
                   planner::PlanCache* cache = nullptr);

// As plan_pod(), but returns only the plan, and throws Error{NoSolution} with the reason if there
// is none.
PodPlan plan_pod_or_throw(const Problem& problem, const device::Pod& pod,
                          const planner::Options& options = {}, const GridPins& pins = {},
                          planner::PlanCache* cache = nullptr);

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
