#pragma once

#include "tessera/examples/graph_challenge_network.hpp"

namespace tessera::examples {

// Runs the network as one program on a modelled machine: all layers stay in the memory of its
// tiles, which fetch the results of the layer before and apply bias, ReLU and cap. Prints its cost.
// `swapped_in` is that of the forward passes of layers that are brought in one after the other.
// Returns true if the answer is the published one.
bool run_resident(const Arguments& arguments, Cycles swapped_in);

}  // namespace tessera::examples
