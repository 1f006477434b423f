#pragma once

#include <cstdint>

#include "tessera/train/rewire/method.hpp"

namespace tessera::train::internal {

// Returns the rewire of TopK after which `blocks` weights are stored. The weights of the request
// have made the optimiser's step already.
Rewired largest_after_step(const TopK& method, const RewireRequest& request, std::int64_t blocks);

}  // namespace tessera::train::internal
