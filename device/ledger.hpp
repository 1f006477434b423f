#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/units.hpp"

namespace tessera::device {

enum class StepKind { Compute, Exchange };

// What one step of the whole machine cost. Cycles are modelled: formulas fed with what the data
// really were. Bytes are counted.
struct StepRecord {
  std::string phase;
  StepKind kind = StepKind::Compute;
  Cycles cycles;         // of the slowest tile, without sync and launch
  Cycles overhead;       // sync before an exchange, launch of a compute step
  TileId critical_tile;  // the slowest; the lowest number on ties
  Cycles tile_sum;       // over all tiles: cycles * tiles - tile_sum is time spent waiting
  Bytes moved;           // received over the exchange by all tiles together

  friend bool operator==(const StepRecord&, const StepRecord&) = default;
};

// One row of a report: the steps of a phase added up.
struct PhaseTotal {
  std::string phase;
  std::int64_t steps = 0;
  Cycles compute, exchange, overhead;
  Cycles tile_sum;  // of compute steps
  Bytes moved;

  Cycles total() const { return compute + exchange + overhead; }
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
