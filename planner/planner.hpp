#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/pattern_stats.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::planner {

// How a search for a plan ended.
enum class PlanStatus {
  Found,
  NoPlan,        // every partition breaks a limit; `reason` says which, `least_temp` how near
  LimitReached,  // Options::search_limit was used up; `plan` is the best so far when `has_plan`
  BestEffort     // only from plan_best_effort: the plan of a relaxed request, `reason` says how
};

// What the search found; a layer that does not fit is no error but a status.
struct PlanResult {
  PlanStatus status = PlanStatus::NoPlan;
  bool has_plan = false;
  Plan plan;
  Bytes memory_bound;  // the bound on temporary bytes that the search ran under
  Bytes least_temp;    // NoPlan: the least temporary bytes of any (sparse) one; 0 if none is legal
  std::int64_t evaluations = 0;  // partitions whose cost was computed
  std::string reason;            // NoPlan: what stood in the way and what would help
};

// The cheapest way to lay the layer on the machine: fewest cycles, among these least temporary
// memory, among these the first in a fixed order. Deterministic; results do not depend on time.
//   stats  optional: the pattern's histograms; buckets then have room for its real size
// Error{InvalidArgument} for a problem, machine, option or pinned partition that cannot be.
// A layer without non-zeros gets one tile when that holds it: there is nothing to share out.
// A few milliseconds; allocates; thread-safe.
PlanResult plan(const Problem& problem, const device::Machine& machine, const Options& options = {},
                const PatternStats* stats = nullptr);

// The same, or Error{NoSolution} with the reason.
Plan plan_or_throw(const Problem& problem, const device::Machine& machine,
                   const Options& options = {}, const PatternStats* stats = nullptr);

}  // namespace tessera::planner
