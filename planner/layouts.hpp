#pragma once

#include "tessera/base/data_type.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/base/pattern_stats.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/base/units.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::planner {

// The layer as seen from its other side: its Fwd is the layer's GradA.
Problem transposed(const Problem& problem);
PatternStats transposed(const PatternStats& stats);

// What each layout of a plan with two is planned for: R here, transpose(R) there.
struct TwoProblems {
  Problem here, there;
};
TwoProblems two_problems(const Problem& problem, bool grad_w_there);

// Partial sums that a pass of this plan adds up for each result.
std::int64_t partial_sums(const Plan& plan, Pass pass);

// One training step's move of R's values from the buckets of one layout to those of another: every
// tile packs what leaves it, one exchange, every tile puts what came into its places.
struct RehomeCost {
  Cycles cycles;    // packing, exchange, putting in place
  Cycles overhead;  // the barrier and both launches
  Bytes temp;       // of one tile: packed values that leave and that came
};
RehomeCost rehome_cost(const Plan& from, const Plan& to, DataType type,
                       const device::Machine& machine);

// Tiles that a tile of the layout `to` receives its values from; counts are the partitions, those
// of `to` in the transpose's naming. By geometry: pieces of a cell lie below each other in its
// rows, and cuts at different places cross.
std::int64_t rehome_senders(Dims from, Dims to, std::int64_t values);

// Packing or unpacking that many values on one tile: a load, a store and the list of places, one
// instruction of a worker each, shared out between the workers.
Cycles pack_cycles(std::int64_t values, const device::Machine& machine);

}  // namespace tessera::planner
