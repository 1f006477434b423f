#pragma once

#include <functional>

#include "tessera/base/problem.hpp"
#include "tessera/report/host_plan.hpp"

namespace tessera::tools {

// Returns the forecast of `tessera plan` for this computer, from its stored rates. `blocks_as`
// returns the number of blocks of a shape that the pattern occupies.
report::HostPlan host_plan(const Problem& problem,
                           const std::function<double(BlockShape)>& blocks_as);

// Returns the seconds that are forecast for all passes of a random pattern of blocks.
double host_random_seconds(Problem problem, BlockShape block, double density);

}  // namespace tessera::tools
