#pragma once

#include <vector>

#include "tessera/bench/planner/bars.hpp"

namespace tessera::bench {

// Plans random training steps of 2 to 6 layers on a GC200, drawn from `seed`, and compares them
// with the cheapest plan of each layer alone: the largest ratio of the cycles, their geometric
// mean, and the seconds in which a network of six layers is planned.
std::vector<Bar> network_bars(std::uint64_t seed);

}  // namespace tessera::bench
