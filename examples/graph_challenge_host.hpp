#pragma once

#include "tessera/examples/graph_challenge_network.hpp"

namespace tessera::examples {

// Runs the network on this computer and prints the time of its parts. Returns true if the answer is
// the published one.
bool run_on_host(const Arguments& arguments);

}  // namespace tessera::examples
