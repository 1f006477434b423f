#pragma once

#include <string>

#include "tessera/runtime/network.hpp"

namespace tessera::report {

// Returns what the last run of a network did, as a JSON object for pages and programs:
//   steps      one object for each step in the order of the run: layer (from 1), work, phase, kind,
//              cycles, overhead_cycles, moved_bytes, tiles, slowest_tile, and held_bytes, the
//              memory that the fullest tile holds in it
//   exchanges  one object for each step of the program that moved data, which are exchanges and the
//              questions of loops: layer, work, phase, `from` and `to`, the names of the buffers
//              that it reads and writes, and the times that it ran, its cycles and moved bytes
//   memory     fullest_tile, and at_peak, the bytes of the buffers that this tile holds at its peak
// `cost` must be of a finished run of this network.
std::string network_steps_json(const runtime::Network& network, const runtime::NetworkCost& cost);

}  // namespace tessera::report
