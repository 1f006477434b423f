#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/pattern_stats.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::planner {

// The outcome of a search for a plan.
enum class PlanStatus {
  Found,         // `plan` is the cheapest plan
  NoPlan,        // every partition breaks a limit; see `reason` and `least_temp`
  LimitReached,  // the search reached Options::search_limit; see `has_plan`
  BestEffort     // from plan_best_effort only: the plan of a relaxed request; see `reason`
};

// The result of a search. A layer that does not fit the machine is a status, not an error.
struct PlanResult {
  PlanStatus status = PlanStatus::NoPlan;
  bool has_plan = false;  // LimitReached: true if a plan was found before the limit
  Plan plan;              // of meaning only if `has_plan`
  Bytes memory_bound;     // upper bound on a tile's temporary memory in this search
  Bytes least_temp;  // NoPlan: least temporary memory of any sparse partition; 0 if none is legal
  std::int64_t evaluations = 0;  // partitions whose cost was computed
  std::string reason;            // without a plan: the limit that is broken and what would help
};

// Plans a layer for a machine. Returns the plan with the fewest cycles, which is a dense one where
// dense costs less and the options leave that open (PlanConstraints::use_dense); among these, the
// one with the least temporary memory; among these, the first in a fixed order. The result is
// deterministic and does not depend on time.
//
// `stats` is optional and describes the pattern of R; bucket capacities then follow the real
// pattern instead of a random one of the problem's density. A layer without non-zeros is planned on
// one tile (per group) if that can hold it, because there is no work to divide.
//
// Throws Error{InvalidArgument} if the problem, the machine, an option, the statistics or a pinned
// partition is invalid. Takes a few milliseconds and allocates. Any number of threads may call it.
PlanResult plan(const Problem& problem, const device::Machine& machine, const Options& options = {},
                const PatternStats* stats = nullptr);

// As plan(), but returns only the plan, and throws Error{NoSolution} with the reason if there is
// none.
Plan plan_or_throw(const Problem& problem, const device::Machine& machine,
                   const Options& options = {}, const PatternStats* stats = nullptr);

}  // namespace tessera::planner
