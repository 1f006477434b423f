#include "tessera/runtime/internal/dense_pass.hpp"
#include "tessera/runtime/internal/lines_of_tiles.hpp"

namespace tessera::runtime::internal {

using device::SlotKind;
using planner::Side;

void DensePass::declare() {
  if (!shared.is_host) return declare_round(rounds.front(), nullptr);
  declare_homes();
  const Round* before = nullptr;
  for (Round& round : rounds) {
    declare_round(round, before);
    before = &round;
  }
  if (selection)
    return void(program.step(NodeKind::Collect, {}, {{selection->best_buffer}, {}}, [] {}));
  Uses results;
  for (Round& round : rounds) {
    round.result = tensor_home(round.homes.result());
    round.reduction.give_slots(round.result);
    results.reads.push_back(round.result.buffer);
  }
  program.step(NodeKind::Collect, {}, results, [this] { collect(); });
}

// Adds the shares of both operands, what a search needs besides, and the step that loads them.
void DensePass::declare_homes() {
  const BufferId left = program.add_buffer("left share", /*resident=*/true);
  const BufferId right = program.add_buffer("right share", /*resident=*/true);
  const auto add_home = [this](std::vector<TensorHome>& homes, Side side, BufferId buffer,
                               std::int64_t round) {
    TensorHome& home =
        homes.emplace_back(home_of(side, rounds[std::size_t(round)], planner::PieceKind::Rows));
    home.buffer = buffer;
    for (HomeShare& share : home.shares)
      share.slot = program.add_slot(buffer, share.tile, share.rows(), share.width * bytes());
  };
  for (std::int64_t i = 0; i < plan.rounds.rows; ++i)
    add_home(left_homes, Side::Left, left, i * plan.rounds.columns);
  for (std::int64_t i = 0; i < plan.rounds.columns; ++i)
    add_home(right_homes, Side::Right, right, i);
  Uses loaded{{}, {left, right}};
  if (selection) {
    add_selection();
    loaded.add({{}, {selection->taken_buffer, selection->request_buffer}});
  }
  program.step(NodeKind::Load, {}, loaded, [this] { load(); });
}

// In a network the operands come from the tiles that hold them, wherever they are. What the host
// loads is charged as if it were spread evenly over the machine, in an order of its own.
void DensePass::add_fetches(const Round& round, Fetches& fetched) {
  if (!shared.is_host) {
    const bool is_gradient = plan.product.pass == Pass::GradW;
    fetched.add(is_gradient ? *shared.q : *shared.weights, round.left.arrived, Cleared::Rows);
    fetched.add(is_gradient ? *shared.s : *shared.in, round.right.arrived, Cleared::Rows);
    return fetched.add(shared.beside);
  }
  const auto add = [&](Side side, const TensorHome& home, const TensorHome& slices) {
    if (!fetches(side, round)) return;
    const auto axis = side == Side::Left ? &Cell::z : &Cell::x;
    fetched.add({home, slices, map, map, axis, plan.parts.*operand_of(side).absent},
                [&](const HomeShare& slice) {
                  return planner::even_spread_senders(engine.machine(),
                                                      slice.elements.size() * bytes(),
                                                      home.rows * home.cols * bytes());
                });
  };
  add(Side::Left, left_homes[std::size_t(round.at.rows)], round.left.arrived);
  add(Side::Right, right_homes[std::size_t(round.at.columns)], round.right.arrived);
}

void DensePass::declare_round(Round& round, const Round* before) {
  Uses arrived, reordered, multiplied;
  const auto use = [&](Side side, OperandSlots& slots, const OperandSlots* kept, const char* name) {
    const bool is_reordered = operand_of(side).reordered;
    if (fetches(side, round)) {
      slots.arrived = home_of(side, round, planner::PieceKind::Slice);
      slots.arrived.buffer = program.add_buffer(std::string(name) + " operand");
      if (is_reordered) {
        slots.ordered_buffer = program.add_buffer(std::string(name) + " operand in order");
        reordered.add({{slots.arrived.buffer}, {slots.ordered_buffer}});
      }
    } else {
      slots = *kept;
    }
    multiplied.reads.push_back(is_reordered ? slots.ordered_buffer : slots.arrived.buffer);
  };
  use(Side::Left, round.left, before != nullptr ? &before->left : nullptr, "left");
  use(Side::Right, round.right, before != nullptr ? &before->right : nullptr, "right");
  round.partial_buffer = program.add_buffer("partial sums");
  multiplied.writes.push_back(round.partial_buffer);
  add_round_slots(round, before);
  Fetches& fetched = fetches_of_rounds.emplace_back(program, type());
  add_fetches(round, fetched);
  fetched.declare_clear();
  fetched.add_uses(arrived);
  program.exchange(Phase::PreArrange, arrived, fetched.take_gathers(), fetched.moves());
  program.compute(Phase::Rearrange, reordered, all,
                  [this, &round](const device::Tile& tile) { return rearrange(round, tile); });
  program.compute(Phase::Distribute, multiplied, all,
                  [this, &round](const device::Tile& tile) { return multiply(round, tile); });
  if (selection)
    declare_selection(round);
  else
    round.reduction.declare(program, round.partial_buffer, columns(round));
}

void DensePass::add_round_slots(Round& round, const Round* before) {
  const bool left = fetches(Side::Left, round), right = fetches(Side::Right, round);
  if (!left) round.left = before->left;
  if (!right) round.right = before->right;
  for (const TileId tile : all) {
    const Cell c = map.cell(tile);
    if (left) add_operand_slots(Side::Left, round.left, tile);
    if (right) add_operand_slots(Side::Right, round.right, tile);
    // Rows of one element, because the reduction cuts the partials at any element.
    const std::int64_t elements = rows_of(round, c).size() * columns_of(round, c).size();
    round.partial.push_back(program.add_slot(round.partial_buffer, tile, elements,
                                             bytes_of(kernel.partials_type), SlotKind::Owned));
  }
}

void DensePass::add_operand_slots(Side side, OperandSlots& slots, TileId tile) {
  HomeShare& slice = slots.arrived.shares[std::size_t(tile.value)];
  const planner::DenseOperand operand = operand_of(side);
  std::int64_t rows = slice.rows(), row = slice.width;
  slice.slot = program.add_slot(slots.arrived.buffer, tile, rows, row * bytes(),
                                shared.is_host ? SlotKind::Landing : SlotKind::Owned);
  if (!operand.reordered) return;
  if (operand.transposed) std::swap(rows, row);
  slots.ordered.push_back(
      program.add_slot(slots.ordered_buffer, tile, rows, row * bytes(), SlotKind::Owned));
}

// A column has the tiles that share a part of the result.
std::vector<ReductionColumn> DensePass::columns(const Round& round) const {
  return columns_along(
      map, &Cell::y, plan.parts.inner,
      [&](Cell c) { return rows_of(round, c).size() * columns_of(round, c).size(); },
      [&](TileId tile) { return round.partial[std::size_t(tile.value)]; });
}

}  // namespace tessera::runtime::internal
