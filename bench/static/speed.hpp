#pragma once

#include "tessera/bench/report.hpp"
#include "tessera/device/machine.hpp"

namespace tessera::bench {

// Plans a layer of 4096 x 4096 with density 1/16 in blocks of 16 and in elements, as PopLibs does
// and by counts, for batches of 64 and 1024, and reports the longest CPU time of each kind.
void static_speed_bars(const device::Machine& machine, Report& report);

}  // namespace tessera::bench
