#pragma once

#include <vector>

#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/internal/holdings.hpp"
#include "tessera/partitioner/internal/leftover.hpp"

namespace tessera::partitioner::internal {

struct Balanced {
  std::vector<Leftover> left;  // what found no place, by bucket
  std::int64_t greedy_steps = 0, lower_bound_steps = 0;
  Cycles load, uneven_load;
};

// Gives every block a place. Whether it can is decided by fill() alone, so that more capacity never
// hurts; where it can, the outcomes of spill_near() and, if asked for, of spill_in_fewest_steps()
// are taken when they are better; the load is evened last, if asked for. Forced spills are
// spill_near()'s test mode and its verdict. Starts from pieces whole at home.
Balanced balance(Holdings& holdings, const EncodeOptions& options);

// What balance() left over, in the terms of the remedy. Tries larger capacities: about ten times
// the cost of one balance(). Leaves `holdings` changed.
Misfit make_misfit(Holdings& holdings, const std::vector<Leftover>& left, bool forced);

}  // namespace tessera::partitioner::internal
