#pragma once

#include "tessera/examples/graph_challenge_network.hpp"

namespace tessera::examples {

// The network on this computer; prints what it took. Is the answer the published one?
bool run_on_host(const Arguments& arguments);

}  // namespace tessera::examples
