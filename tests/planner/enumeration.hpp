#pragma once

#include "tessera/planner/planner.hpp"

namespace tessera::planner {

// planner::plan by looking at every partition: the truth, and the time a solver must beat. The
// same arguments, results and errors; a layer without non-zeros is spread like any other.
PlanResult plan_by_enumeration(const Problem& problem, const device::Machine& machine,
                               const Options& options = {}, const PatternStats* stats = nullptr);

// Whether both say the same: status, bound and the whole plan. How many partitions were looked at
// does not count.
bool equal_answers(const PlanResult& a, const PlanResult& b);

}  // namespace tessera::planner
