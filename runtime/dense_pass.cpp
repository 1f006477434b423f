#include "tessera/runtime/internal/dense_pass.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/codelets/dense.hpp"
#include "tessera/planner/dense_operand.hpp"
#include "tessera/runtime/internal/visit.hpp"

namespace tessera::runtime::internal {

using device::ByteRows;
using planner::Side;

namespace {

const planner::DensePassPlan& plan_of(const planner::DensePlan& layer, Pass pass) {
  const planner::DensePassPlan* plan = layer.find(pass);
  if (plan == nullptr)
    throw_invalid(
        fmt::format("the dense plan has no {}; plan a problem with that pass", to_string(pass)));
  return *plan;
}

// Writes rows in the order of the kernel: without gaps, transposed if the slice is.
void write_in_order(const ByteRows& from, bool transposed, std::int64_t bytes, std::byte* to) {
  const std::int64_t across = from.row_bytes / bytes;
  for (std::int64_t line = 0; line < from.rows; ++line) {
    const std::byte* row = from.data + line * from.stride;
    if (!transposed) {
      std::memcpy(to + line * from.row_bytes, row, std::size_t(from.row_bytes));
      continue;
    }
    for (std::int64_t i = 0; i < across; ++i)
      std::memcpy(to + (i * from.rows + line) * bytes, row + i * bytes, std::size_t(bytes));
  }
}

void check_size(const char* name, const ByteRows& array, std::int64_t rows,
                std::int64_t row_bytes) {
  if (array.rows == rows && array.row_bytes == row_bytes) return;
  throw_invalid(fmt::format("{} has {} rows of {} bytes; the plan has {} rows of {} bytes", name,
                            array.rows, array.row_bytes, rows, row_bytes));
}

}  // namespace

void check_dense_plan(const planner::DensePlan& plan, const Problem& problem, Pass pass) {
  const planner::DensePassPlan* const found = plan.find(pass);
  if (found == nullptr || found->product != planner::dense_product(problem, pass) ||
      plan.groups != problem.size.g || plan.data_type != problem.data_type)
    throw_invalid(fmt::format("the dense plan is for another layer than {}; plan it again",
                              to_string(problem)));
}

DensePass::DensePass(const planner::DensePlan& layer, Pass pass,
                     const std::optional<Selection>& search, TileProgram& of_state,
                     const PassHomes& homes)
    : form(planner::dense_form(plan_of(layer, pass), layer, of_state.engine().machine())),
      plan(plan_of(layer, pass)),
      selection(search),
      kernel(
          planner::dense_kernel(of_state.engine().machine(), layer.data_type, layer.partials_type)),
      program(of_state),
      engine(of_state.engine()),
      shared(homes),
      map(planner::dense_map(plan, layer.groups)),
      all(map.all()) {
  const planner::ProductShape whole = selection ? selection->round_grain : planner::ProductShape();
  for (std::int64_t rows = 0; rows < plan.rounds.rows; ++rows)
    for (std::int64_t columns = 0; columns < plan.rounds.columns; ++columns) {
      const planner::ProductShape at{rows, 0, columns};
      rounds.push_back({.at = at,
                        .homes = planner::DenseHomes(plan, {at, whole, layer.groups}),
                        .reduction = {plan.parts.inner, kernel.partials_type, type()}});
    }
  TESSERA_ASSERT(shared.is_host || rounds.size() == 1);
}

planner::DenseOperand DensePass::operand_of(Side side) const {
  return shared.is_host ? planner::dense_operand(plan.product, plan.weights, side)
                        : planner::network_operand(plan.product, plan.weights, side);
}

void DensePass::load() {
  if (selection) load_selection();
  for (const TensorHome& home : left_homes) load_rows(engine, home, arrays.left, bytes());
  for (const TensorHome& home : right_homes) load_rows(engine, home, arrays.right, bytes());
}

// In a network the rows of dQ are stored as the kernel of GradW reads them here, but the plan
// charges the transposition that a layer alone takes.
Cycles DensePass::rearrange(const Round& round, const device::Tile& tile) const {
  Cycles cycles;
  const auto reorder = [&](Side side, const OperandSlots& slots) {
    const auto t = std::size_t(tile.id().value);
    const HomeShare& slice = slots.arrived.shares[t];
    const planner::DenseOperand operand = operand_of(side);
    if (!fetches(side, round) || !operand.reordered || slice.elements.size() == 0) return;
    write_in_order(tile.view(slice.slot), operand.transposed, bytes(),
                   tile.view(slots.ordered[t]).data);
    cycles += codelets::dense_reorder_cycles(
        kernel, slice.rows(), slice.width,
        planner::dense_operand(plan.product, plan.weights, side).transposed);
  };
  reorder(Side::Left, round.left);
  reorder(Side::Right, round.right);
  return cycles;
}

Cycles DensePass::multiply(const Round& round, const device::Tile& tile) const {
  const Cell c = map.cell(tile.id());
  const auto t = std::size_t(tile.id().value);
  const std::int64_t columns = columns_of(round, c).size(), rows = rows_of(round, c).size();
  const std::int64_t inner = round.homes.range(&planner::ProductShape::inner, c).size();
  if (rows == 0 || inner == 0 || columns == 0) return {};
  const auto in_order = [&](const OperandSlots& slots) {
    return operand(
        tile.view(slots.ordered.empty() ? slots.arrived.shares[t].slot : slots.ordered[t]),
        bytes());
  };
  codelets::multiply_dense({in_order(round.left),
                            in_order(round.right),
                            {tile.view(round.partial[t]).data, rows, columns, columns}},
                           type(), kernel.partials_type);
  const bool is_field = plan.weights == Side::Right;
  return codelets::dense_cycles(kernel,
                                {is_field ? rows : columns, inner, is_field ? columns : rows});
}

void DensePass::collect() const {
  for (const Round& round : rounds) collect_rows(engine, round.result, arrays.out, bytes());
}

void DensePass::declare_alone(Executor&) {
  declare();
  form.casts = form.casts || selection;  // the search takes the place of the cast
  program.check_steps(form);
}

void DensePass::start(const DenseArrays& of_run) {
  const planner::PassProduct& product = plan.product;
  const auto [rows, inner, columns] = product.size;
  const std::int64_t groups = map.splits().g;
  check_size("the left operand", of_run.left, groups * (product.left_transposed ? inner : rows),
             bytes() * (product.left_transposed ? rows : inner));
  check_size("the right operand", of_run.right,
             groups * (product.right_transposed ? columns : inner),
             bytes() * (product.right_transposed ? inner : columns));
  if (!selection) check_size("the result", of_run.out, groups * rows, bytes() * columns);
  arrays = of_run;
}

}  // namespace tessera::runtime::internal
