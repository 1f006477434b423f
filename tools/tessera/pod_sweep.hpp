#pragma once

#include <cstdint>
#include <vector>

#include "tessera/tools/internal/study.hpp"
#include "tessera/tools/layer_arguments.hpp"

namespace tessera::tools {

// A sweep over pods of several sizes.
struct PodSweep {
  LayerArguments layer;
  std::vector<std::int64_t> devices;  // of each pod
  bool csv = false;
  internal::StudyOutput output;
};

// Plans the layer for every pod: with its own batch (strong scaling), and with its batch times the
// number of devices (weak scaling). Prints the time of devices and of each collective, the
// efficiency and the grid, or writes JSON, CSV and a page. Nothing is run. Returns the exit code of
// the program.
int sweep_devices(const PodSweep& sweep);

}  // namespace tessera::tools
