#include "tessera/runtime/internal/dense_pass.hpp"
#include "tessera/runtime/internal/lines_of_tiles.hpp"

namespace tessera::runtime::internal {

using device::Gather;
using device::SlotId;
using device::SlotKind;
using planner::Side;

void DensePass::declare() {
  if (shared != nullptr) return declare_round(rounds.front(), nullptr);
  declare_homes();
  const Round* before = nullptr;
  for (Round& round : rounds) {
    declare_round(round, before);
    before = &round;
  }
  if (selection)
    return void(program.step(NodeKind::Collect, {}, {{selection->best_buffer}, {}}, [] {}));
  Uses results;
  for (const Round& round : rounds) results.reads.push_back(round.reduction.result());
  program.step(NodeKind::Collect, {}, results, [this] { collect(); });
}

// Adds the shares of both operands, what a search needs besides, and the step that loads them.
void DensePass::declare_homes() {
  left_home = program.add_buffer("left share", /*resident=*/true);
  right_home = program.add_buffer("right share", /*resident=*/true);
  const auto add_homes = [this](BufferId buffer, auto& homes, std::int64_t ranges, auto slice_of) {
    for (std::int64_t i = 0; i < ranges; ++i) {
      std::vector<SlotId>& slots = homes.emplace_back();
      for (const TileId tile : all) {
        const DenseSlice slice = slice_of(i, map.cell(tile));
        const std::int64_t lines =
            share_of(slice.lines.size(), 1, slice.takers, slice.taker).size();
        slots.push_back(program.add_slot(buffer, tile, lines, slice.across.size() * bytes()));
      }
    }
  };
  const Reduction none(1, type(), type());
  add_homes(left_home, left_homes, plan.rounds.rows,
            [&](std::int64_t i, Cell c) { return slice_of(Side::Left, Round(i, 0, none), c); });
  add_homes(right_home, right_homes, plan.rounds.columns,
            [&](std::int64_t i, Cell c) { return slice_of(Side::Right, Round(0, i, none), c); });
  Uses loaded{{}, {left_home, right_home}};
  if (selection) {
    add_selection();
    loaded.add({{}, {selection->taken_buffer, selection->request_buffer}});
  }
  program.step(NodeKind::Load, {}, loaded, [this] { load(); });
}

// In a network the operands come from the tiles that hold them, wherever they are.
void DensePass::declare_fetches(const Round& round) {
  const auto slices = [&](Side side, const OperandSlots& to) {
    return slices_home(planner::DenseHomes(plan).slices(side), to.arrived_buffer,
                       [&](TileId tile) { return to.arrived[std::size_t(tile.value)]; });
  };
  left_slices = slices(Side::Left, round.left);
  right_slices = slices(Side::Right, round.right);
  fetched.emplace(program, type());
  const bool is_gradient = plan.product.pass == Pass::GradW;
  fetched->add(is_gradient ? *shared->q : *shared->weights, left_slices, Cleared::Rows);
  fetched->add(is_gradient ? *shared->s : *shared->in, right_slices, Cleared::Rows);
  fetched->add(shared->beside);
  fetched->declare_clear();
}

void DensePass::declare_round(Round& round, const Round* before) {
  Uses arrived, reordered, multiplied;
  if (shared == nullptr) arrived.reads = {left_home, right_home};
  const auto use = [&](Side side, OperandSlots& slots, const OperandSlots* kept, const char* name) {
    const bool is_reordered = slice_of(side, round, {}).reordered;
    if (fetches(side, round)) {
      slots.arrived_buffer = program.add_buffer(std::string(name) + " operand");
      if (shared == nullptr) arrived.writes.push_back(slots.arrived_buffer);
      if (is_reordered) {
        slots.ordered_buffer = program.add_buffer(std::string(name) + " operand in order");
        reordered.add({{slots.arrived_buffer}, {slots.ordered_buffer}});
      }
    } else {
      slots = *kept;
    }
    multiplied.reads.push_back(is_reordered ? slots.ordered_buffer : slots.arrived_buffer);
  };
  use(Side::Left, round.left, before != nullptr ? &before->left : nullptr, "left");
  use(Side::Right, round.right, before != nullptr ? &before->right : nullptr, "right");
  round.partial_buffer = program.add_buffer("partial sums");
  multiplied.writes.push_back(round.partial_buffer);
  add_round_slots(round, before);
  if (shared != nullptr) {
    declare_fetches(round);
    fetched->add_uses(arrived);
  }
  program.exchange(Phase::PreArrange, arrived, fetched ? std::vector<Gather>() : gathers(round),
                   fetched ? fetched->moves() : std::vector<device::Move>());
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
    if (left) add_operand_slots(round.left, slice_of(Side::Left, round, c), tile);
    if (right) add_operand_slots(round.right, slice_of(Side::Right, round, c), tile);
    // Rows of one element, because the reduction cuts the partials at any element.
    const std::int64_t elements = rows_of(round, c).size() * columns_of(round, c).size();
    round.partial.push_back(program.add_slot(round.partial_buffer, tile, elements,
                                             bytes_of(kernel.partials_type), SlotKind::Owned));
  }
}

void DensePass::add_operand_slots(OperandSlots& slots, const DenseSlice& slice, TileId tile) {
  const std::int64_t lines = slice.lines.size(), across = slice.across.size();
  slots.arrived.push_back(
      program.add_slot(slots.arrived_buffer, tile, lines, across * bytes(),
                       shared != nullptr ? SlotKind::Owned : SlotKind::Landing));
  if (!slice.reordered) return;
  const std::int64_t rows = slice.transposed ? across : lines;
  const std::int64_t row_bytes = (slice.transposed ? lines : across) * bytes();
  slots.ordered.push_back(
      program.add_slot(slots.ordered_buffer, tile, rows, row_bytes, SlotKind::Owned));
}

// A column has the tiles that share a part of the result.
std::vector<ReductionColumn> DensePass::columns(const Round& round) const {
  return columns_along(
      map, &Cell::y, plan.parts.inner,
      [&](Cell c) { return rows_of(round, c).size() * columns_of(round, c).size(); },
      [&](TileId tile) { return round.partial[std::size_t(tile.value)]; });
}

// The tiles that need a slice hold equal shares of it, but are charged as if the operand were
// spread evenly over the machine, in an order of its own.
std::vector<Gather> DensePass::gathers(const Round& round) const {
  std::vector<Gather> result;
  const planner::ProductShape& size = plan.product.size;
  const auto add = [&](Side side, std::int64_t Cell::* axis, const OperandSlots& slots,
                       const std::vector<SlotId>& homes, std::int64_t elements) {
    if (!fetches(side, round)) return;
    gather_slices(
        result, map, axis, slice_of(side, round, {}).takers,
        [&](Cell c) {
          const DenseSlice slice = slice_of(side, round, c);
          return slice.empty() ? 0 : slice.lines.size();
        },
        [&](Cell c) {
          const auto tile = std::size_t(map.tile(c).value);
          return SliceSlots{homes[tile], slots.arrived[tile]};
        },
        [&](Cell c) {
          const DenseSlice slice = slice_of(side, round, c);
          return planner::even_spread_senders(engine.machine(),
                                              slice.lines.size() * slice.across.size() * bytes(),
                                              map.splits().g * elements * bytes());
        });
  };
  add(Side::Left, &Cell::z, round.left, left_homes[std::size_t(round.at.rows)],
      size.rows * size.inner);
  add(Side::Right, &Cell::x, round.right, right_homes[std::size_t(round.at.columns)],
      size.inner * size.columns);
  return result;
}

}  // namespace tessera::runtime::internal
