#pragma once

#include "tessera/base/data_type.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/base/pattern_stats.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/base/units.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::planner {

// Return the transposed layer and its statistics. The Fwd of the transposed layer computes the
// GradA of the layer.
Problem transposed(const Problem& problem);
PatternStats transposed(const PatternStats& stats);

// The problem of each layout of a plan with two layouts.
struct TwoProblems {
  Problem here, there;  // R, transpose(R)
};

// Returns the problems of both layouts. GradW belongs to that of transpose(R) if `grad_w_there` is
// true, otherwise to that of R.
TwoProblems two_problems(const Problem& problem, bool grad_w_there);

// Returns the number of partial sums that a pass of the plan adds up for each result.
std::int64_t partial_sums(const Plan& plan, Pass pass);

// The cost of moving R's values once per training step from the buckets of one layout to those of
// another. Every tile packs the values that leave it, one exchange moves them, and every tile puts
// the values that it received in place.
struct RehomeCost {
  Cycles cycles;    // packing, exchange and putting in place
  Cycles overhead;  // the barrier and both launches
  Bytes temp;       // of one tile: the packed values that leave and those received
};

// Returns the cost of the move from the layout `from` to the layout `to`.
RehomeCost rehome_cost(const Plan& from, const Plan& to, DataType type,
                       const device::Machine& machine);

// Returns the number of tiles from which a tile of the layout `to` receives its `values`. `from`
// and `to` are partition counts, those of `to` in the naming of the transposed layer. The number
// follows from geometry: the pieces of a cell are consecutive ranges of its rows, and cuts at
// different places cross.
std::int64_t rehome_senders(Dims from, Dims to, std::int64_t values);

// Returns the cycles of packing or unpacking that many values on one tile. Each value takes three
// instructions of a worker, for a load, a store and the list of places; the values are divided
// between the workers.
Cycles pack_cycles(std::int64_t values, const device::Machine& machine);

}  // namespace tessera::planner
