#pragma once

#include <cstdint>
#include <optional>

#include "tessera/device/engine.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/tools/layer_arguments.hpp"

namespace tessera::tools {

// A bit that flips in one pass.
struct FaultRequest {
  planner::Pass pass = planner::Pass::Fwd;
  device::Fault fault;
};

// The command line of sparse_fc_layer, checked as far as it can be without reading a file.
struct Arguments : LayerArguments {
  std::uint64_t seed = 1;
  bool isolate = false;  // copy between tiles instead of sharing memory
  int threads = 0;       // of this computer; 0: all
  bool self_check = false;
  std::optional<FaultRequest> fault;
};

// What the command line asks for: a run, or an exit with this code (help or a usage error, already
// printed). Error{Internal} when help could not be written.
struct Parsed {
  Arguments arguments;
  std::optional<int> exit;
};
Parsed parse_arguments(int argc, const char* const* argv);

}  // namespace tessera::tools
