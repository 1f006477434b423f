#pragma once

#include <optional>

#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/internal/holdings.hpp"

namespace tessera::partitioner::internal {

// Returns the cycles that one pass spends on visits: the slowest cell of the home visit, and for
// every other displacement the slowest record there and a shift, splits.z times. Records are
// assumed to be spread evenly over the workers. O(guests).
Cycles visits_cycles(const Holdings& holdings, const LoadCost& cost);

// Returns a placement that spends less on visits than `spilled`, or nothing. Tries some more steps,
// and limits to the blocks that a cell may have at one displacement. `whole` has pieces whole at
// home. Costs some hundred flows. Deterministic.
std::optional<Holdings> even_load(const Holdings& whole, const Holdings& spilled,
                                  const LoadCost& cost);

}  // namespace tessera::partitioner::internal
