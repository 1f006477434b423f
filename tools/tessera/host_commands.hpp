#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/report/host_plan.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/tools/layer_arguments.hpp"

namespace tessera::tools {

// Returns the forecast of `tessera plan` for this computer, from its stored rates. `blocks_as`
// returns the number of blocks of a shape that the pattern occupies.
report::HostPlan host_plan(const Problem& problem,
                           const std::function<double(BlockShape)>& blocks_as);

// The layer of `tessera crossover`.
struct CrossoverRequest {
  LayerArguments layer;
  std::vector<BlockShape> blocks;              // to compare with dense
  std::optional<sparse::Csr<double>> pattern;  // of a file, with values 1; empty: none was given
};

// Returns the text of `tessera crossover` for this computer. It runs random layers of every block
// and halves the interval of densities. Dense is the fastest product of the same or of float
// elements that this computer has. Every run is repeated until its spread is below the step of the
// densities, for at most a third of a second.
std::string host_crossover(const CrossoverRequest& request);

}  // namespace tessera::tools
