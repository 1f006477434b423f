#pragma once

#include "tessera/base/problem.hpp"
#include "tessera/base/units.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/planner.hpp"

namespace tessera::planner {

// Plans a layer as plan() does, for a caller who has use only for plans with fewer cycles than
// `limit`. Returns the plan of plan() if that has fewer cycles, and otherwise the status NoPlan
// with an empty reason, whether the layer does not fit or costs too much. The lower the limit is,
// the sooner the search ends.
//
// Throws Error{InvalidArgument} as plan() does, and for Options::poplibs_parity, because that
// search widens its limits on memory step by step. Any number of threads may call it.
PlanResult plan_below(const Problem& problem, const device::Machine& machine, Cycles limit,
                      const Options& options = {});

// The least cycles of a layer.
struct PlanFloor {
  Cycles cycles;             // no plan has fewer
  bool possible = true;      // false: it is certain that the layer has no plan
  bool with_buckets = true;  // false: it is certain that it has none with buckets

  friend bool operator==(const PlanFloor&, const PlanFloor&) = default;
};

// Returns a bound of the cycles of plan() for a layer without known pattern. It divides the
// partitions of every kind of plan, best bound first, until `boxes` boxes of them are open that may
// hold a plan, or the cheapest plan is found; so more boxes give a better floor for more time, some
// microseconds for each box that is divided. Options::search_limit does not end it.
//
// Throws the errors of plan_below(), and Error{InvalidArgument} for less than one box. Any number
// of threads may call it.
PlanFloor plan_floor(const Problem& problem, const device::Machine& machine, const Options& options,
                     std::int64_t boxes);

}  // namespace tessera::planner
