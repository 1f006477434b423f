#include "tessera/planner/matmul.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/codelets/cost/dense_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/dense_plan.hpp"

namespace tessera::planner {
namespace {

// Finds the cut of one group over `tiles` tiles.
void cut_for_transpose(std::int64_t tiles, TransposePlan& plan) {
  std::int64_t least = -1;
  for (std::int64_t rows = 1; rows <= std::min(tiles, plan.rows); ++rows) {
    const std::int64_t cols = std::min(tiles / rows, plan.cols);
    const std::int64_t part = ceil_div(plan.rows, rows) * ceil_div(plan.cols, cols);
    if (least >= 0 && part >= least) continue;
    least = part;
    plan.row_parts = rows;
    plan.col_parts = cols;
  }
}

void price_transpose(const device::Machine& machine, TransposePlan& plan) {
  const std::int64_t element = bytes_of(plan.data_type);
  const std::int64_t rows = plan.rows_of(0).size(), cols = plan.cols_of(0).size();
  const std::int64_t part = rows * cols * element;
  const std::int64_t all = plan.groups * plan.rows * plan.cols * element;
  plan.senders = even_spread_senders(machine, part, all);
  plan.arrange = codelets::arrange_cycles(all, machine.tiles, machine.arrange_bytes_per_cycle);
  if (plan.senders > 0)
    plan.exchange = Cycles(plan.senders * machine.receive_start.value +
                           ceil_div(part, machine.exchange_bytes_per_cycle));
  plan.transpose = codelets::dense_reorder_cycles(
      {.data_type = plan.data_type, .workers = machine.workers}, rows, cols, /*transposed=*/true);
  plan.waiting = Cycles(2 * machine.launch.value + (plan.senders > 0 ? machine.sync.value : 0));
  plan.temp = Bytes(2 * part);
}

}  // namespace

TransposePlan plan_transpose(std::int64_t groups, MatrixShape shape, DataType data_type,
                             const device::Machine& machine) {
  if (groups < 1 || groups > machine.tiles || shape.rows < 1 || shape.cols < 1)
    throw_invalid(
        fmt::format("the transposition of {} groups of {} x {} on {} tiles; sizes must be 1 or "
                    "more, and every group needs a tile",
                    groups, shape.rows, shape.cols, machine.tiles));
  TransposePlan plan{
      .groups = groups, .rows = shape.rows, .cols = shape.cols, .data_type = data_type};
  cut_for_transpose(machine.tiles / groups, plan);
  price_transpose(machine, plan);
  return plan;
}

MatMulPlan matmul_plan(const MatMulProblem& problem, Plan layer, const device::Machine& machine) {
  MatMulPlan plan{problem, std::move(layer), {}};
  if (moves_dense_operand(problem))
    plan.move = plan_transpose(problem.groups, dense_shape(problem), problem.data_type, machine);
  return plan;
}

void add_transpose(const TransposePlan& move, Pass pass, PlanCost& cost) {
  for (PassCost& of_pass : cost.passes) {
    if (of_pass.pass != pass) continue;
    std::vector<CostTerm>& terms = of_pass.terms;
    terms.insert(terms.begin(), {{Term::TransposeOperand,
                                  move.arrange + move.exchange + move.transpose, move.temp},
                                 {Term::BarriersAndLaunches, move.waiting, Bytes()}});
    cost.cycles += move.cycles();
    cost.temp = std::max(cost.temp, move.temp);
  }
}

}  // namespace tessera::planner
