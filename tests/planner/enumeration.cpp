#include "tessera/tests/planner/enumeration.hpp"

#include "tessera/planner/internal/planner_search.hpp"

namespace tessera::planner {

PlanResult plan_by_enumeration(const Problem& problem, const device::Machine& machine,
                               const Options& options, const PatternStats* stats) {
  return internal::plan_with(problem, machine, options, stats, internal::search_exhaustively);
}

}  // namespace tessera::planner
