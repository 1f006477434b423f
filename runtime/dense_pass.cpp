#include "tessera/runtime/internal/dense_pass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/codelets/dense.hpp"
#include "tessera/planner/dense_operand.hpp"
#include "tessera/runtime/internal/visit.hpp"

namespace tessera::runtime::internal {

using device::ByteRows;
using planner::ProductDim;
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
void write_in_order(const ByteRows& from, const DenseSlice& slice, std::int64_t bytes,
                    std::byte* to) {
  const std::int64_t across = slice.across.size();
  for (std::int64_t line = 0; line < from.rows; ++line) {
    const std::byte* row = from.data + line * from.stride;
    if (!slice.transposed) {
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
  for (std::int64_t rows = 0; rows < plan.rounds.rows; ++rows)
    for (std::int64_t columns = 0; columns < plan.rounds.columns; ++columns)
      rounds.emplace_back(rows, columns, Reduction(plan.parts.inner, kernel.partials_type, type()));
  TESSERA_ASSERT(shared.is_host || rounds.size() == 1);
}

Range DensePass::range_of(ProductDim dim, const Round& round, Cell c) const {
  const std::int64_t whole = selection ? selection->round_grain.*dim : 1;
  const Range in_round = share_of(plan.product.size.*dim, whole, plan.rounds.*dim, round.at.*dim);
  const Range part =
      share_of(in_round.size(), plan.grain.*dim, plan.parts.*dim, c.*planner::axis_of(dim));
  return {in_round.begin + part.begin, in_round.begin + part.end};
}

DenseSlice DensePass::slice_of(Side side, const Round& round, Cell c) const {
  planner::DenseOperand operand = planner::dense_operand(plan.product, plan.weights, side);
  const bool is_charged = operand.transposed;
  if (!shared.is_host && plan.product.pass == Pass::GradW && side == Side::Left) {
    std::swap(operand.lines, operand.across);
    operand.transposed = false;
  }
  return {.lines = range_of(operand.lines, round, c),
          .across = range_of(operand.across, round, c),
          .all_lines = plan.product.size.*operand.lines,
          .all_across = plan.product.size.*operand.across,
          .takers = plan.parts.*operand.absent,
          .taker = side == Side::Left ? c.z : c.x,
          .transposed = operand.transposed,
          .reordered = operand.reordered,
          .charged_as_transposed = is_charged};
}

TensorHome DensePass::home_of(Side side, const Round& round, planner::PieceKind kind) const {
  TESSERA_ASSERT(kind != planner::PieceKind::Elements);
  TensorHome home;
  for (const TileId tile : all) {
    const Cell c = map.cell(tile);
    const DenseSlice slice = slice_of(side, round, c);
    const std::int64_t lines = slice.lines.size(), across = slice.across.size();
    const Range own = kind == planner::PieceKind::Slice
                          ? Range{0, lines}
                          : share_of(lines, 1, slice.takers, slice.taker);
    home.rows = map.splits().g * slice.all_lines;
    home.cols = slice.all_across;
    home.shares.push_back({{c.g * slice.all_lines + slice.lines.begin + own.begin,
                            slice.across.begin,
                            std::max<std::int64_t>(across, 1),
                            {0, own.size() * across}},
                           tile,
                           {}});
  }
  return home;
}

void DensePass::load() {
  if (selection) load_selection();
  for (const TensorHome& home : left_homes) load_rows(engine, home, arrays.left, bytes());
  for (const TensorHome& home : right_homes) load_rows(engine, home, arrays.right, bytes());
}

Cycles DensePass::rearrange(const Round& round, const device::Tile& tile) const {
  const Cell c = map.cell(tile.id());
  Cycles cycles;
  const auto reorder = [&](const OperandSlots& slots, const DenseSlice& slice) {
    if (!slice.reordered || slice.empty()) return;
    const auto t = std::size_t(tile.id().value);
    write_in_order(tile.view(slots.arrived.shares[t].slot), slice, bytes(),
                   tile.view(slots.ordered[t]).data);
    cycles += codelets::dense_reorder_cycles(kernel, slice.lines.size(), slice.across.size(),
                                             slice.charged_as_transposed);
  };
  if (fetches(Side::Left, round)) reorder(round.left, slice_of(Side::Left, round, c));
  if (fetches(Side::Right, round)) reorder(round.right, slice_of(Side::Right, round, c));
  return cycles;
}

Cycles DensePass::multiply(const Round& round, const device::Tile& tile) const {
  const Cell c = map.cell(tile.id());
  const auto t = std::size_t(tile.id().value);
  const DenseSlice left = slice_of(Side::Left, round, c), right = slice_of(Side::Right, round, c);
  if (left.empty() || right.empty()) return {};
  const auto in_order = [&](const OperandSlots& slots, const DenseSlice& slice) {
    return operand(tile.view(slice.reordered ? slots.ordered[t] : slots.arrived.shares[t].slot),
                   bytes());
  };
  const std::int64_t columns = columns_of(round, c).size(), rows = rows_of(round, c).size();
  const std::int64_t inner = range_of(&planner::ProductShape::inner, round, c).size();
  codelets::multiply_dense({in_order(round.left, left),
                            in_order(round.right, right),
                            {tile.view(round.partial[t]).data, rows, columns, columns}},
                           type(), kernel.partials_type);
  const bool is_field = plan.weights == Side::Right;
  return codelets::dense_cycles(kernel,
                                {is_field ? rows : columns, inner, is_field ? columns : rows});
}

void DensePass::collect() const {
  for (const Round& round : rounds)
    round.reduction.collect(engine, [&](TileId tile) {
      const Cell c = map.cell(tile);
      const Range rows = rows_of(round, c), columns = columns_of(round, c);
      const std::int64_t first = c.g * plan.product.size.rows;
      return arrays.out.sub({first + rows.begin, first + rows.end},
                            {columns.begin * bytes(), columns.end * bytes()});
    });
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
