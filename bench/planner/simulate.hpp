#pragma once

#include <optional>
#include <string>

#include "tessera/base/executor.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/report/report.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// Returns the number of multiply-adds of one pass.
double multiply_adds(const Problem& problem);

// A layer with its pattern on a machine.
struct Layer {
  std::string name;
  Problem problem;
  device::Machine machine;
  sparse::Csr<float> weights;
};

// The result of planning and running a layer: a report of all its passes, or the reason why there
// is none.
struct Run {
  std::optional<report::LayerReport> report;
  std::string failure;

  std::optional<Cycles> simulated() const;  // of all passes, from the engine's ledger
  std::optional<Cycles> planned() const;
};

// Plans the layer and runs every pass once with shared memory. The result has a failure if there is
// no plan, the pattern does not fit the buckets, the program does not fit a tile, or a result is
// wrong. The planner sees `stats`, or assumes a uniform pattern if it is nullptr.
Run simulate(const Layer& layer, const planner::Options& options, const PatternStats* stats,
             Executor& executor);

// Runs a given plan as above.
Run simulate_plan(const Layer& layer, const planner::Plan& plan, Executor& executor);

}  // namespace tessera::bench
