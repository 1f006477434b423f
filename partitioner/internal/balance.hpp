#pragma once

#include <vector>

#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/internal/holdings.hpp"
#include "tessera/partitioner/internal/leftover.hpp"

namespace tessera::partitioner::internal {

struct Balanced {
  std::vector<Leftover> left;  // blocks without a place, by bucket
  std::int64_t greedy_steps = 0, lower_bound_steps = 0;
  Cycles load, uneven_load;
};

// Gives every block a place. fill() alone decides whether that is possible, so more capacity never
// hurts. If it is possible, the outcomes of spill_near() and, if asked for, of
// spill_in_fewest_steps() are taken when they are better; the load is evened last, if asked for.
// With forced spills, spill_near() in its test mode both decides and places. `holdings` must have
// all pieces whole at home.
Balanced balance(Holdings& holdings, const EncodeOptions& options);

// Describes what balance() left over in terms of the remedy. Tries larger capacities, which costs
// about ten times as much as one balance(). Changes `holdings`.
Misfit make_misfit(Holdings& holdings, const std::vector<Leftover>& left, bool forced);

}  // namespace tessera::partitioner::internal
