#pragma once

#include <vector>

#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/internal/holdings.hpp"
#include "tessera/partitioner/internal/leftover.hpp"

namespace tessera::partitioner::internal {

// Gives every block a place. Whether it can is decided by fill() alone, so that more capacity never
// hurts; where it can, the outcome of spill_near() is taken when it needs no more visits. `forced`
// is spill_near()'s test mode and its verdict. Starts from pieces whole at home; returns what found
// no place, by bucket.
std::vector<Leftover> balance(Holdings& holdings, bool forced);

// What balance() left over, in the terms of the remedy. Tries larger capacities: about ten times
// the cost of one balance(). Leaves `holdings` changed.
Misfit make_misfit(Holdings& holdings, const std::vector<Leftover>& left, bool forced);

}  // namespace tessera::partitioner::internal
