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

// One pass as it was planned, as it ran, and whether it was right.
struct PassReport {
  Pass pass = Pass::Fwd;
  device::Ledger ledger;
  std::optional<verify::Verdict> verdict;  // none: not checked
  std::optional<TileReport> tiles;         // none: nobody asked for it
};

// Everything a run of a layer has to say, as data.
struct LayerReport {
  std::string source;  // where the weights came from
  Problem problem;
  planner::Plan plan;
  device::Machine machine;
  partitioner::TileGrid grid;     // of one group
  partitioner::SpillStats spill;  // of all groups, as FullyConnected::spill
  partitioner::Travel travel;
  Bytes high_water;  // of the fullest tile; 0: the programs were not built
  std::vector<PassReport> passes;

  // No pass that was checked is wrong.
  bool ok() const;
};

// Cycles one dense pass of this layer takes at least: every multiply-accumulate unit of every tile
// busy all the time (4 half or 2 float products a unit and cycle), nothing moved. None for a
// machine without such units.
std::optional<Cycles> dense_bound(const Problem& problem, const device::Machine& machine);

// One screen of text: layer, machine, plan, buckets and spills, cycles per phase beside the plan's,
// the slowest tile of each pass, verdicts, and a last line that says whether all is well. Without
// passes it ends at the buckets.
std::string to_text(const LayerReport& report);

}  // namespace tessera::report
