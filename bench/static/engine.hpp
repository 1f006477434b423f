#pragma once

#include "tessera/base/units.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// Runs Fwd of a half layer of one group with this plan on the modelled machine, with operands of
// zeros, and returns its cycles.
Cycles run_static(const sparse::Csr<float>& matrix, const Problem& problem,
                  const planner::StaticPlan& plan, const device::Machine& machine);

// Returns the rate of the best static plan by that of the best plan for patterns that may change,
// both run: Fwd of 4096 x 4096 in blocks of 16, half with half sums, batch 1024, density 1/16.
double static_over_dynamic(const device::Machine& machine);

}  // namespace tessera::bench
