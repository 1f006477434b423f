#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/device/ledger.hpp"
#include "tessera/device/memory.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/runtime/program.hpp"

namespace tessera::report {

// A measure of how unevenly the steps of a pass load the tiles. A ratio is the slowest tile divided
// by the mean of the tiles that took part: at least 1, and 1 if no tile did any work.
struct Imbalance {
  std::int64_t longest_step = -1;  // the step with most cycles, the first on ties; -1: no steps
  double of_longest = 1;           // ratio of that step
  double of_compute = 1;           // ratio of all compute steps together

  friend bool operator==(const Imbalance&, const Imbalance&) = default;
};

// Returns the imbalance of the steps of a run. O(steps).
Imbalance imbalance(const device::Ledger& ledger);

// The figures of one pass, tile by tile. The first four vectors are [tiles of the machine].
struct TileReport {
  std::vector<Cycles> compute, exchange;  // without barriers, launches and control
  std::vector<Bytes> sent, received;      // over the exchange
  device::MemoryUse memory;               // of the program of the pass
  std::vector<runtime::Buffer> buffers;   // of that program
  runtime::Liveness liveness;             // the intervals of those buffers

  friend bool operator==(const TileReport&, const TileReport&) = default;
};

// Adds up, over all steps, the figures that TileOptions::tiles kept. `ledger` is of the same run;
// `memory` and `program` are those of the layer. Throws Error{Internal} if the two ledgers have
// different numbers of steps. O(steps * tiles).
TileReport tile_report(const device::Ledger& ledger, const device::TileLedger& kept,
                       device::MemoryUse memory, const runtime::Program& program);

// Returns, as JSON, the number of values in each tile's bucket and the share of its capacity that
// they fill, for the buckets of every group. They may be those of transpose(R); x and y are always
// axes of R.
std::string tiles_json(std::span<const partitioner::Buckets* const> groups,
                       bool is_transposed = false);

}  // namespace tessera::report
