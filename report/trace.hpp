#pragma once

#include <cstdint>
#include <string>

#include "tessera/device/ledger.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/device/memory.hpp"

namespace tessera::report {

// How much of a pass a trace may show.
struct TraceLimits {
  std::int64_t tracks = 64;       // of tiles; more tiles than that share tracks, in equal groups
  std::int64_t events = 100'000;  // in all; where they do not do, groups grow, then the tail is cut
};

// What a trace shows: one pass.
struct TracedRun {
  std::string name;
  const device::Machine& machine;
  const device::Ledger& ledger;
  const device::TileLedger& tiles;  // RunOptions::tiles of the same run; empty: no tracks of tiles
  const device::MemoryUse& memory;  // of the same program
};

// The run in Chrome's trace format (JSON), for Perfetto or chrome://tracing: a track of the whole
// machine with every step and the sync or launch before it, whose lengths add up to the ledger's
// total; a track for each tile, or for the slowest tile of each group; a counter of the bytes that
// live on the fullest tile. Times are microseconds of the machine's clock, the exact cycles stand
// in `args` with their origin. Events come in the order of time. At most limits.events events of at
// most kBytesOfAnEvent bytes each; steps left out are counted in otherData. limits.tracks >= 0 and
// limits.events >= 100, else Error{InvalidArgument}.
std::string to_trace(const TracedRun& run, const TraceLimits& limits = {});

// The most bytes of text one event of a trace takes.
inline constexpr std::int64_t kBytesOfAnEvent = 320;

}  // namespace tessera::report
