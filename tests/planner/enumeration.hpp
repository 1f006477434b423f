#pragma once

#include "tessera/planner/planner.hpp"

namespace tessera::planner {

// planner::plan by looking at every partition: the truth, and the time a solver must beat. The
// same arguments, results and errors; a layer without non-zeros is spread like any other.
PlanResult plan_by_enumeration(const Problem& problem, const device::Machine& machine,
                               const Options& options = {}, const PatternStats* stats = nullptr);

}  // namespace tessera::planner
