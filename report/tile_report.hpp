#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/device/ledger.hpp"
#include "tessera/device/memory.hpp"
#include "tessera/runtime/program.hpp"

namespace tessera::report {

// How unevenly the steps of a pass load the tiles. Ratios are the slowest tile over the mean of
// those that took part, 1 or more; 1 where nothing was done.
struct Imbalance {
  std::int64_t longest_step =
      -1;                 // that takes most cycles, the first of equals; -1: no step at all
  double of_longest = 1;  // of that step
  double of_compute = 1;  // of all compute steps together

  friend bool operator==(const Imbalance&, const Imbalance&) = default;
};
// O(steps).
Imbalance imbalance(const device::Ledger& ledger);

// A pass tile by tile: each list has an entry for every tile of the machine.
struct TileReport {
  std::vector<Cycles> compute, exchange;  // without sync, launch and control
  std::vector<Bytes> sent, received;      // over the exchange
  device::MemoryUse memory;               // of the pass's program
  std::vector<runtime::Buffer> buffers;   // of that program,
  runtime::Liveness liveness;             // and when they live

  friend bool operator==(const TileReport&, const TileReport&) = default;
};

// Adds up what RunOptions::tiles kept, over the steps of the same run's ledger; memory and program
// are those of the layer. Steps without tiles add nothing. O(steps * tiles).
TileReport tile_report(const device::Ledger& ledger, const device::TileLedger& kept,
                       device::MemoryUse memory, const runtime::Program& program);

}  // namespace tessera::report
