#pragma once

#include "tessera/bench/report.hpp"

namespace tessera::bench {

// Compares the plans of random patterns of up to eight blocks with every assignment of the blocks
// to four tiles.
void small_plan_bars(Report& report);

}  // namespace tessera::bench
