#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/planner/internal/search.hpp"
#include "tessera/planner/planner.hpp"

namespace tessera::planner::internal {

// A partition of one combination of methods, with its cost.
struct RankedPlan {
  const Case* of = nullptr;
  PricedParts at;
};

// The cheapest partitions of all combinations of methods.
struct Ranking {
  std::vector<RankedPlan> cheapest;  // of equal ones, those of earlier cases come first
  bool limit_reached = false;
  std::int64_t evaluations = 0;  // partitions whose cost was computed
  Bytes memory_bound;
};

// The plans that a search is for.
struct Wanted {
  std::int64_t fewer_than = kUnbounded;  // cycles
  std::int64_t count = 1;                // of the cheapest plans, at least 1
  bool any = false;                      // any plan will do, the first one that is found
};

// Finds the cheapest plans of all cases with so many bytes of temporary memory. Of plans that cut
// the same blocks of R in the same way, only the cheapest one counts; of equal ones, those of the
// first case come first, in ascending order of x, y, z. The planner's is rank_by_bounds(); tests
// compare it with a search of every partition.
using Search = Ranking (*)(const std::vector<Case>& cases, std::int64_t temp_bound,
                           const Wanted& wanted);

// A request to the planner.
struct Asked {
  Problem problem;
  device::Machine machine;
  Options options;
  const PatternStats* stats = nullptr;

  // Returns the request with other options.
  Asked with(const Options& changed) const { return {problem, machine, changed, stats}; }
};

// Does the work of plan() for one layout, with a given search, so that tests can compare the two
// searches. With a limit of cycles, a plan that is not found has no reason.
PlanResult plan_with(const Asked& asked, Search search, std::int64_t fewer_than = kUnbounded);

// Does the work of plan() for plans with buckets, of one or two layouts.
PlanResult plan_with_buckets(const Asked& asked, std::int64_t fewer_than = kUnbounded);

// Does the work of plan() for plans with fewer cycles than a limit. Without a limit, which is
// kUnbounded, a layer that does not fit has a reason.
PlanResult plan_fewer(const Asked& asked, std::int64_t fewer_than);

// Every combination of methods of one request, in the order in which they are tried.
struct CaseSet {
  std::unique_ptr<PatternSize> pattern;  // the cases point to it; null without statistics
  std::vector<Case> cases;               // never empty
};

// Checks a request and returns its cases. Throws the errors of plan().
CaseSet make_cases(const Asked& asked);

// Returns the cheapest plan of all cases that costs fewer than `fewer_than` cycles. If there is
// none, `reason` and `least_temp` stay empty.
PlanResult find_plan(const std::vector<Case>& cases, Search search,
                     std::int64_t fewer_than = kUnbounded);

// Returns the cheapest plans under the first bound of temporary memory that has any.
Ranking rank_plans(const std::vector<Case>& cases, Search search, const Wanted& wanted);

// Returns the plan of a case at one partition, even if it breaks limits.
Plan make_plan(const Case& c, Dims parts);

// Returns the upper bounds on temporary bytes that are tried one after the other until there is a
// plan: one bound, or several under Options::poplibs_parity.
std::vector<std::int64_t> temp_bounds(const device::Machine& machine, const Options& options);

// Throws Error{InvalidArgument} unless temporary data may take this share of a tile's memory.
void check_memory_share(double share);

// Returns the bytes of that share.
std::int64_t temp_bound(const device::Machine& machine, double share);

// Returns "a tile needs 5 bytes at least and has 4, of which temporary data may take 60 %".
std::string too_small_text(const device::Machine& machine, double share, std::int64_t least_bytes);

// Throws Error{InvalidArgument} if the request is invalid.
void check_request(const Problem& problem, const device::Machine& machine, const Options& options,
                   const PatternStats* stats);

// Throws Error{InvalidArgument} for a pinned count that no candidate can have.
void check_pins(const std::vector<Case>& cases);

}  // namespace tessera::planner::internal
