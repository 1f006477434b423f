#pragma once

#include "tessera/bench/report.hpp"
#include "tessera/device/machine.hpp"

namespace tessera::bench {

// Plans all passes of 36 layers with random patterns (blocks of 1, 4 and 16, six sizes, densities
// of 0.02 and 0.1, batches of 64 and 512), and reports their cycles by those of the best cut that
// was found with GradA on the tiles of the other passes.
void training_plan_figures(const device::Machine& machine, Report& report);

}  // namespace tessera::bench
