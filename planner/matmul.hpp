#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/base/matmul.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::planner {

// The transposition of a dense operand [groups * rows][cols] on a machine, all of whose tiles hold
// equal runs of it. Every group is cut into row_parts x col_parts parts, each of which one tile
// receives and transposes; the last parts may be smaller, or empty. Cycles are those of the slowest
// tile.
struct TransposePlan {
  std::int64_t groups = 1, rows = 1, cols = 1;
  DataType data_type = DataType::Half;
  std::int64_t row_parts = 1, col_parts = 1;
  std::int64_t senders = 0;  // from which a tile receives the largest part
  Cycles arrange;            // each tile puts its run in the order of the parts
  Cycles exchange;           // a tile receives its part
  Cycles transpose;          // and transposes it
  Cycles waiting;            // one barrier and two launches
  Bytes temp;                // of one tile: its part twice

  friend bool operator==(const TransposePlan&, const TransposePlan&) = default;
  Cycles cycles() const { return arrange + exchange + transpose + waiting; }

  // Returns the rows and the columns of a part.
  Range rows_of(std::int64_t part) const { return share_of(rows, 1, row_parts, part); }
  Range cols_of(std::int64_t part) const { return share_of(cols, 1, col_parts, part); }
};

// Returns the cut whose largest part is smallest; among these, the one with fewer parts of rows.
// Throws Error{InvalidArgument} unless the sizes are above 0 and every group has a tile.
TransposePlan plan_transpose(std::int64_t groups, MatrixShape shape, DataType data_type,
                             const device::Machine& machine);

// A plan of a product: the plan of its layer, and of the transposition of the dense operand if the
// machine must move it.
struct MatMulPlan {
  MatMulProblem problem;
  Plan layer;
  std::optional<TransposePlan> move;

  friend bool operator==(const MatMulPlan&, const MatMulPlan&) = default;
};

// Returns the plan of a product with this plan of its layer (layer_of), which plan() or a PlanCache
// has made.
MatMulPlan matmul_plan(const MatMulProblem& problem, Plan layer, const device::Machine& machine);

// Adds the terms of a transposition to the cost of the pass that it precedes.
void add_transpose(const TransposePlan& move, Pass pass, PlanCost& cost);

}  // namespace tessera::planner
