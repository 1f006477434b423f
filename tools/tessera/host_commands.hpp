#pragma once

#include <functional>
#include <string>

#include "tessera/base/problem.hpp"
#include "tessera/report/host_plan.hpp"
#include "tessera/tools/layer_arguments.hpp"

namespace tessera::tools {

// `tessera plan` for this computer, from the rates that are kept of it. `blocks_as` tells how many
// blocks of a shape it takes to hold the pattern.
report::HostPlan host_plan(const Problem& problem,
                           const std::function<double(BlockShape)>& blocks_as);

// `tessera crossover` for this computer: real runs of random layers of every block size, halving
// the interval of densities.
std::string host_crossover(const LayerArguments& arguments);

}  // namespace tessera::tools
