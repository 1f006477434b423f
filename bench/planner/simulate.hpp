#pragma once

#include <optional>
#include <string>

#include "tessera/base/executor.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/report/report.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// Multiply-adds of one pass.
double multiply_adds(const Problem& problem);

// A layer with its pattern, on a machine.
struct Layer {
  std::string name;
  Problem problem;
  device::Machine machine;
  sparse::Csr<float> weights;
};

// What came of planning and running a layer: a report of all its passes, or why there is none.
struct Run {
  std::optional<report::LayerReport> report;
  std::string failure;

  std::optional<Cycles> simulated() const;  // of all passes, from the engine's ledger
  std::optional<Cycles> planned() const;
};

// Plans the layer and runs every pass once with shared memory. No plan, a pattern that does not
// fit the buckets, a program that does not fit a tile and a wrong result are the run's failure.
//   stats  what the planner is told of the pattern; nullptr: it is uniform
Run simulate(const Layer& layer, const planner::Options& options, const PatternStats* stats,
             Executor& executor);

}  // namespace tessera::bench
