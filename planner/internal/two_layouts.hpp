#pragma once

#include <optional>
#include <vector>

#include "tessera/planner/internal/planner_search.hpp"

namespace tessera::planner::internal {

// Returns true if plan() may give GradA a layout of its own.
bool may_split(const Problem& problem, const Options& options);

// Joins the plans of two layouts, those of two_problems(). Returns nullopt if a tile cannot hold
// both or if temporary memory exceeds its bound.
std::optional<Plan> joined(Plan forward, const Plan& backward, const Problem& problem,
                           const device::Machine& machine, Bytes temp_bound);

// The number of plans of each layout and kind of methods that are tried with those of the other
// layout. The move of the values takes fewer cycles the better the cells of both layouts fit each
// other, which the search for one layout does not see.
inline constexpr std::int64_t kPlansOfALayout = 4;

// Returns a plan with a separate layout for GradA: R in the buckets of Fwd, transpose(R) in those
// of GradA, and a move of the values from one to the other once per training step. GradW runs on
// either layout. Of all pairs of the kPlansOfALayout cheapest plans of each layout with the methods
// that an option can ask for (in large blocks or not, travelling buckets or not, rearranged
// operands or not), it is the one with the fewest cycles, the move included. The status is
// LimitReached if a search of a layout has ended at Options::search_limit, and NoPlan if no such
// plan costs fewer than `fewer_than` cycles, if a tile cannot hold both layouts, or if the request
// allows only one layout.
PlanResult plan_two_layouts(const Asked& asked, std::int64_t fewer_than);

// Returns all pairs of the kPlansOfALayout cheapest plans of each layout, for GradW on either, the
// cheapest first.
std::vector<Plan> cheapest_pairs(const Asked& asked);

}  // namespace tessera::planner::internal
