#pragma once

#include <vector>

#include "tessera/planner/internal/search.hpp"
#include "tessera/planner/planner.hpp"

namespace tessera::planner::internal {

using Search = SearchOutcome (*)(const Case&, const SearchBounds&);

// plan() with a search of the caller's choice: the tests put both searches behind the same door.
PlanResult plan_with(const Problem& problem, const device::Machine& machine, const Options& options,
                     const PatternStats* stats, Search search);

// Error{InvalidArgument} for a request that cannot be.
void check_request(const Problem& problem, const device::Machine& machine, const Options& options,
                   const PatternStats* stats);

// Error{InvalidArgument} for a pinned count that no candidate can have.
void check_pins(const std::vector<Case>& cases);

}  // namespace tessera::planner::internal
