#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/phase.hpp"
#include "tessera/base/units.hpp"

namespace tessera::device {

using tessera::StepKind;

// The origin of a figure: counted from the real data, computed by a formula from counted work, or
// read from a clock.
enum class Origin { Counted, Modelled, Measured };

// Returns "counted", "modelled" or "measured".
std::string to_string(Origin origin);

// The cost of one step of the whole machine: a row of the ledger.
struct StepRecord {
  static constexpr Origin kCyclesOrigin = Origin::Modelled;  // of all fields in cycles
  static constexpr Origin kBytesOrigin = Origin::Counted;    // of all fields in bytes

  Phase phase = Phase::Distribute;
  StepKind kind = StepKind::Compute;
  Cycles cycles;           // of the slowest tile, without sync and launch
  Cycles overhead;         // sync of an exchange that moves data, launch of a compute step, both
                           // for control
  TileId critical_tile;    // the slowest tile; the lowest number on ties
  Cycles tile_sum;         // over all tiles; cycles * tiles - tile_sum is the time spent waiting
  Bytes moved;             // received by all tiles together over the exchange
  std::int64_t tiles = 0;  // tiles that took part

  friend bool operator==(const StepRecord&, const StepRecord&) = default;

  // Returns the cycles of the slowest tile divided by the mean of the tiles that took part; 1 if no
  // tile did any work.
  double imbalance() const;
};

// The work of one tile in one step.
struct TileFigures {
  Cycles cycles;         // without sync and launch
  Bytes sent, received;  // over the exchange

  friend bool operator==(const TileFigures&, const TileFigures&) = default;
};

// A ledger that records every tile, for callers that ask for it with Engine::keep_tiles.
struct TileLedger {
  std::vector<std::vector<TileFigures>> steps;  // [steps of the ledger][tiles of the machine]
  std::vector<int> stages;  // [steps] numbers of begin_stage(); -1: no stage had begun

  friend bool operator==(const TileLedger&, const TileLedger&) = default;
};

// The sum of all steps of one phase: a row of a report.
struct PhaseTotal {
  Phase phase = Phase::Distribute;
  std::int64_t steps = 0;
  Cycles compute, exchange, control, overhead;
  Cycles tile_sum;  // of compute steps
  Bytes moved;

  // Returns the cycles of the slowest tiles, without overhead.
  Cycles busy() const { return compute + exchange + control; }

  // Returns the cycles with overhead.
  Cycles total() const { return busy() + overhead; }
};

// All steps of a run in order. A plain value. Two runs of the same program on the same data have
// equal ledgers for every exchange mode and number of threads.
struct Ledger {
  std::vector<StepRecord> steps;

  friend bool operator==(const Ledger&, const Ledger&) = default;

  // Returns the cycles of all steps with their overhead.
  Cycles total() const;

  // Returns the bytes that all tiles received over the exchange.
  Bytes moved() const;

  // Returns one total for each phase, in the order of the first step of each.
  std::vector<PhaseTotal> phases() const;
};

}  // namespace tessera::device
