#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/report/dense_verdict.hpp"
#include "tessera/report/tile_report.hpp"
#include "tessera/verify/self_check.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::report {

// One pass that has run: its ledger, the verdict on its result and the figures of its tiles.
struct PassReport {
  Pass pass = Pass::Fwd;
  device::Ledger ledger;
  std::optional<verify::Verdict> verdict;       // no value: not checked
  std::optional<verify::Checksums> self_check;  // no value: not requested
  std::optional<TileReport> tiles;              // no value: not requested
};

// All figures of a run of a layer on a modelled machine, as data.
struct LayerReport {
  std::string source;  // origin of the weights
  Problem problem;
  planner::Plan plan;  // of a static layer only its cost and its placement
  std::optional<planner::StaticPlan> static_plan = {};  // of a layer whose pattern stays
  device::Machine machine;
  partitioner::TileGrid grid;     // of one group
  partitioner::SpillStats spill;  // of all groups, from FullyConnected::spill
  partitioner::Travel travel;
  Bytes high_water;     // bytes on the fullest tile; 0: the programs were not built
  Bytes pattern_bytes;  // FullyConnected::pattern_bytes
  std::vector<PassReport> passes;
  DenseBaseline dense;            // of the same passes; no plan and no reason: not compared
  SparseAlternative sparse = {};  // of a layer that runs dense; no plan and no reason: not compared
  Outlook outlook;                // what is known of other layers than this one

  // Returns true if no checked pass is wrong.
  bool ok() const;
};

// Returns the passes of the report beside their dense plan or, if the layer runs dense, beside its
// plan with buckets: those that ran or, if none did, those of the plan. Returns no value if the
// report has neither the other plan nor a reason.
std::optional<DenseComparison> dense_comparison(const LayerReport& report);

// Returns one screen of text: layer, machine, plan, buckets and spills, the cycles of each phase
// beside those of the plan, the longest step and slowest tile of each pass, the verdicts, a line
// with the outcome, and whether sparse pays. A report without passes leaves out all between the
// buckets and that last line.
std::string to_text(const LayerReport& report);

}  // namespace tessera::report
