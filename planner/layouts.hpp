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
  Problem forward, transposed;  // R, transpose(R)
};

// Returns the problems of both layouts. GradW belongs to that of transpose(R) if `grad_w_there` is
// true, otherwise to that of R.
TwoProblems two_problems(const Problem& problem, bool grad_w_transposed);

// Returns the number of partial sums that a pass of the plan adds up for each result.
std::int64_t partial_sums(const Plan& plan, Pass pass);

// A side of the matrix of a layout in equal parts of whole blocks; size and block are in elements.
struct CutSide {
  std::int64_t size, block, parts;

  Range part(std::int64_t i) const { return share_of(size, block, parts, i); }
  // Returns the parts that these rows or columns overlap: none for an empty range.
  Range meeting(Range wanted) const;
};

// The cells of one layout that a cell of the other one overlaps: a rectangle, numbered by rows.
struct MetCells {
  Range x, y;

  std::int64_t count() const { return x.size() * y.size(); }
  bool holds(std::int64_t cx, std::int64_t cy) const {
    return cx >= x.begin && cx < x.end && cy >= y.begin && cy < y.end;
  }
  std::int64_t index(std::int64_t cx, std::int64_t cy) const {
    return (cx - x.begin) * y.size() + cy - y.begin;
  }
};

// The cost of moving R's values once per training step from the buckets of one layout to those of
// another, for a pattern that does not spill. Every tile receives the value buckets of all cells
// that its own cell meets, in one exchange that depends on the plan alone. It then copies the
// values that its index table names.
struct RehomeCost {
  Cycles cycles;    // exchange and copying
  Cycles overhead;  // the barrier and the launch
  Bytes temp;       // of one tile: the received buckets, or the buckets that pass by if some spill
  Bytes table;      // of one tile, resident
};

// Returns the cost of the move from the layout `from` to the layout `to`.
RehomeCost rehome_cost(const Plan& from, const Plan& to, const Problem& problem,
                       const device::Machine& machine);

// Returns cycles that the cycles and the overhead of rehome_cost() do not fall below, in time that
// grows with the parts of both layouts and not with their tiles.
Cycles least_rehome_cycles(const Plan& from, const Plan& to, const Problem& problem,
                           const device::Machine& machine);

// Returns the largest number of tiles whose value buckets one tile of the layout `to`, which is
// planned for the transpose, receives.
std::int64_t rehome_senders(const Plan& from, const Plan& to, const Problem& problem);

// Returns the cycles of copying that many values of a bucket by an index table on one tile. Each
// value takes three instructions of a worker, for the word of the table, a load and a store; the
// values are divided between the workers.
Cycles unpack_cycles(std::int64_t values, const device::Machine& machine);

}  // namespace tessera::planner
