#pragma once

#include "tessera/bench/report.hpp"
#include "tessera/device/machine.hpp"

namespace tessera::bench {

// Compares PopLibs' search with 495 plans that were computed from its rules, and the cycles of its
// cuts on the modelled machine with 159 that were published. Takes minutes, most of them for
// drawing patterns of up to 67 million places.
void static_published_bars(const device::Machine& machine, Report& report);

}  // namespace tessera::bench
