#pragma once

#include <optional>

#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/internal/holdings.hpp"

namespace tessera::partitioner::internal {

// What one pass spends on visits: the slowest cell of the home visit, and for every other
// displacement the slowest record there and a shift, splits.z times. Records count as spread evenly
// over the workers. O(guests).
Cycles visits_cycles(const Holdings& holdings, const LoadCost& cost);

// A placement that spends less on visits than `spilled`, or none. Looks at some more steps and at
// limits to what a cell may have at one displacement; `whole` has pieces whole at home.
// Some hundred flows. Deterministic.
std::optional<Holdings> even_load(const Holdings& whole, const Holdings& spilled,
                                  const LoadCost& cost);

}  // namespace tessera::partitioner::internal
