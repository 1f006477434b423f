#pragma once

#include <memory>
#include <vector>

#include "tessera/planner/internal/search.hpp"
#include "tessera/planner/planner.hpp"

namespace tessera::planner::internal {

using Search = SearchOutcome (*)(const Case&, const SearchBounds&);

// What is asked of the planner.
struct Asked {
  Problem problem;
  device::Machine machine;
  Options options;
  const PatternStats* stats = nullptr;
};

// plan() with a search of the caller's choice: the tests put both searches behind the same door.
PlanResult plan_with(const Problem& problem, const device::Machine& machine, const Options& options,
                     const PatternStats* stats, Search search);

// Every combination of methods of one request, in the order they are tried.
struct CaseSet {
  std::unique_ptr<PatternSize> pattern;  // the cases point to it; empty without statistics
  std::vector<Case> cases;               // never empty
};

// Errors as plan().
CaseSet make_cases(const Problem& problem, const device::Machine& machine, const Options& options,
                   const PatternStats* stats);

// The cheapest plan of all cases; without `reason` and `least_temp` when there is none.
// `fewer_than`: only plans that cost less are of interest.
PlanResult find_plan(const std::vector<Case>& cases, Search search,
                     std::int64_t fewer_than = kUnbounded);

// The plan of a case at one partition, whatever limits that breaks.
Plan make_plan(const Case& c, Dims parts);

// The bounds on temporary bytes that are tried one after the other until there is a plan.
std::vector<std::int64_t> temp_bounds(const device::Machine& machine, const Options& options);

// Error{InvalidArgument} for a request that cannot be.
void check_request(const Problem& problem, const device::Machine& machine, const Options& options,
                   const PatternStats* stats);

// Error{InvalidArgument} for a pinned count that no candidate can have.
void check_pins(const std::vector<Case>& cases);

}  // namespace tessera::planner::internal
