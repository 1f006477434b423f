#pragma once

#include <functional>
#include <string>

#include "tessera/base/problem.hpp"
#include "tessera/report/host_plan.hpp"
#include "tessera/tools/layer_arguments.hpp"

namespace tessera::tools {

// Returns the forecast of `tessera plan` for this computer, from its stored rates. `blocks_as`
// returns the number of blocks of a shape that the pattern occupies.
report::HostPlan host_plan(const Problem& problem,
                           const std::function<double(BlockShape)>& blocks_as);

// Returns the text of `tessera crossover` for this computer. It runs random layers of every block
// size and halves the interval of densities.
std::string host_crossover(const LayerArguments& arguments);

}  // namespace tessera::tools
