#pragma once

#include <cstdint>
#include <string>

#include "tessera/tools/options/layer_arguments.hpp"
#include "tessera/tools/options/study_output.hpp"

namespace tessera::tools {

// The command line of `tessera network`.
struct NetworkArguments {
  std::string file, trace;
  std::string buckets, save_buckets;  // files of encoded weights; empty: none
  LayerArguments layer;               // the machine and the options of the planner
  std::int64_t steps = 1;
  std::uint64_t seed = 1;
  int threads = 0;
  bool explain = false, isolate = false, recompute = false;
  StudyOutput output;
};

// Plans the network of the file, runs it as one program on the modelled machine of the arguments,
// and prints and writes what they ask for. Returns the exit code.
int network_on_machine(const NetworkArguments& arguments);

// Runs the network of the file on this computer and prints the measured time of each kind of work
// of each layer, the shortest of all steps, and the losses, and writes the page. Returns the exit
// code.
int network_on_host(const NetworkArguments& arguments);

}  // namespace tessera::tools
