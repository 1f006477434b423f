#pragma once

#include <string>

#include "tessera/base/units.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// Runs Fwd of a half layer of one group with this plan on the modelled machine, with operands of
// zeros, and returns its cycles.
Cycles run_static(const sparse::Csr<float>& matrix, const Problem& problem,
                  const planner::StaticPlan& plan, const device::Machine& machine);

// Fwd of 4096 x 4096 in blocks of 16, half, batch 1024, density 1/16, as it runs under the best
// static plan and under the best plans for patterns that may change.
struct BesideDynamic {
  device::Ledger of_static;   // sums in half, the type of the data
  device::Ledger float_sums;  // PopSparse's default, with which the rates were published
  device::Ledger half_sums;

  // Returns the rate of the static plan by that of the other.
  double over_float_sums() const;
  double over_half_sums() const;
};

BesideDynamic run_beside_dynamic(const device::Machine& machine);

// Returns the cycles of all three, phase by phase, with the published ones of two of them.
std::string to_text(const BesideDynamic& ledgers);

}  // namespace tessera::bench
