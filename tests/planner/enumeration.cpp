#include "tessera/tests/planner/enumeration.hpp"

#include "tessera/planner/internal/planner_search.hpp"

namespace tessera::planner {

PlanResult plan_by_enumeration(const Problem& problem, const device::Machine& machine,
                               const Options& options, const PatternStats* stats) {
  return internal::plan_with(problem, machine, options, stats, internal::search_exhaustively);
}

bool equal_answers(const PlanResult& a, const PlanResult& b) {
  return a.status == b.status && a.has_plan == b.has_plan && a.memory_bound == b.memory_bound &&
         a.plan == b.plan;
}

}  // namespace tessera::planner
