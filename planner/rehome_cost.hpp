#pragma once

#include "tessera/base/data_type.hpp"
#include "tessera/base/units.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::planner {

// One training step's move of R's values from the buckets of one layout to those of another: every
// tile packs what leaves it, one exchange, every tile puts what came into its places.
struct RehomeCost {
  Cycles cycles;  // with barrier and launches
  Bytes temp;     // of one tile: packed values that leave and that came
};
RehomeCost rehome_cost(const Plan& from, const Plan& to, DataType type,
                       const device::Machine& machine);

// Packing or unpacking that many values on one tile: a load, a store and the list of places, one
// instruction of a worker each, shared out between the workers.
Cycles pack_cycles(std::int64_t values, const device::Machine& machine);

}  // namespace tessera::planner
