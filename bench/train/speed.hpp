#pragma once

#include <vector>

#include "tessera/bench/report.hpp"
#include "tessera/train/data/idx.hpp"

namespace tessera::bench {

// A part of the bars of speed. `run` prints a line for each of its bars: one thread unless a line
// says otherwise, and medians by the CPU clock of the thread.
struct SpeedPart {
  const char* name;
  void (*run)(const train::DataSet& data, Report& report);
};

const std::vector<SpeedPart>& speed_parts();

}  // namespace tessera::bench
