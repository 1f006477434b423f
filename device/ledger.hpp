#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/phase.hpp"
#include "tessera/base/units.hpp"

namespace tessera::device {

using tessera::StepKind;

// How a figure came about: from the real data, from a formula fed with them, or by a clock.
enum class Origin { Counted, Modelled, Measured };
std::string to_string(Origin origin);

// What one step of the whole machine cost.
struct StepRecord {
  static constexpr Origin kCyclesOrigin = Origin::Modelled;  // of everything in cycles
  static constexpr Origin kBytesOrigin = Origin::Counted;    // of everything in bytes

  Phase phase = Phase::Distribute;
  StepKind kind = StepKind::Compute;
  Cycles cycles;           // of the slowest tile, without sync and launch
  Cycles overhead;         // sync before an exchange, launch of a compute step, both for control
  TileId critical_tile;    // the slowest; the lowest number on ties
  Cycles tile_sum;         // over all tiles: cycles * tiles - tile_sum is time spent waiting
  Bytes moved;             // received over the exchange by all tiles together
  std::int64_t tiles = 0;  // that took part

  friend bool operator==(const StepRecord&, const StepRecord&) = default;
  // The slowest tile over the mean of those that took part; 1 when nothing was done.
  double imbalance() const;
};

// What one tile did in one step.
struct TileFigures {
  Cycles cycles;         // without sync and launch
  Bytes sent, received;  // over the exchange

  friend bool operator==(const TileFigures&, const TileFigures&) = default;
};

// A ledger tile by tile, for one who asks for it.
struct TileLedger {
  std::vector<std::vector<TileFigures>> steps;  // [steps of the ledger][tiles of the machine]
  std::vector<int> phases;                      // of each step, as slots count them; -1: none

  friend bool operator==(const TileLedger&, const TileLedger&) = default;
};

// One row of a report: the steps of a phase added up.
struct PhaseTotal {
  Phase phase = Phase::Distribute;
  std::int64_t steps = 0;
  Cycles compute, exchange, control, overhead;
  Cycles tile_sum;  // of compute steps
  Bytes moved;

  // Without overhead: what the slowest tiles took.
  Cycles busy() const { return compute + exchange + control; }
  Cycles total() const { return busy() + overhead; }
};

// All steps in the order they ran. A plain value; two runs of the same program on the same data
// have equal ledgers whatever the exchange mode and the number of threads.
struct Ledger {
  std::vector<StepRecord> steps;

  friend bool operator==(const Ledger&, const Ledger&) = default;
  Cycles total() const;
  Bytes moved() const;
  // Phases in the order of their first step.
  std::vector<PhaseTotal> phases() const;
};

}  // namespace tessera::device
