#pragma once

#include "tessera/bench/report.hpp"

namespace tessera::bench {

// Prints one line for each bar of HostLayer::update_weights by set_weights of the same layer, with
// all passes, 4096 x 4096, density 0.1, one thread.
void update_bars(Report& report);

}  // namespace tessera::bench
