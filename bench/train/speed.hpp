#pragma once

#include "tessera/bench/report.hpp"
#include "tessera/train/data/idx.hpp"

namespace tessera::bench {

// Prints one line for each bar of speed. One thread unless a line says otherwise; times are medians
// by the CPU clock of the thread.
void speed_bars(const train::DataSet& data, Report& report);

}  // namespace tessera::bench
