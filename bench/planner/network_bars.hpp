#pragma once

#include <vector>

#include "tessera/bench/planner/bars.hpp"

namespace tessera::bench {

// Plans random training steps of 2 to 6 layers on a GC200, drawn from `seed`, and compares them
// with the cheapest plan of each layer alone: the share of networks that are not dearer, the
// geometric mean of the cycles by those of the layers alone, and the time of a network of six
// layers.
std::vector<Bar> network_bars(std::uint64_t seed);

}  // namespace tessera::bench
