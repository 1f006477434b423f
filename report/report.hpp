#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/report/tile_report.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::report {

// One pass that has run: its ledger, the verdict on its result and the figures of its tiles.
struct PassReport {
  Pass pass = Pass::Fwd;
  device::Ledger ledger;
  std::optional<verify::Verdict> verdict;  // no value: not checked
  std::optional<TileReport> tiles;         // no value: not requested
};

// All figures of a run of a layer on a modelled machine, as data.
struct LayerReport {
  std::string source;  // origin of the weights
  Problem problem;
  planner::Plan plan;
  device::Machine machine;
  partitioner::TileGrid grid;     // of one group
  partitioner::SpillStats spill;  // of all groups, from FullyConnected::spill
  partitioner::Travel travel;
  Bytes high_water;  // bytes on the fullest tile; 0: the programs were not built
  std::vector<PassReport> passes;

  // Returns true if no checked pass is wrong.
  bool ok() const;
};

// Returns a lower bound on the cycles of one dense pass of this layer: every multiply-accumulate
// unit of every tile is busy in every cycle (4 half or 2 float products per unit and cycle), and no
// data move. Returns no value for a machine without such units.
std::optional<Cycles> dense_bound(const Problem& problem, const device::Machine& machine);

// Returns one screen of text: layer, machine, plan, buckets and spills, the cycles of each phase
// beside those of the plan, the longest step and slowest tile of each pass, the verdicts, and a
// last line with the outcome. A report without passes ends after the buckets.
std::string to_text(const LayerReport& report);

}  // namespace tessera::report
