#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/runtime/internal/grad_w_pass.hpp"

namespace tessera::runtime::internal {
namespace {

using device::SlotId;

// An operand that travels, in two buffers on every tile.
// Invariant: on every tile, slots[at] holds the slice that is there now, and slots[1 - at] is free
// to be written by a move or a round.
struct TravellingOperand {
  std::array<BufferId, 2> buffers;
  std::array<std::vector<SlotId>, 2> slots;  // by tile
  std::size_t at = 0;

  const std::vector<SlotId>& now() const { return slots[at]; }
  const std::vector<SlotId>& free() const { return slots[1 - at]; }
};

// GradW with travelling operands: words and sums stay, and a tile receives the operands of the
// cells whose non-zeros it holds, one part of z at a time. Slices at the edge are smaller, so the
// bytes of a move or a round depend on the displacement of the operands: its exchange is made when
// it runs, in storage that is reused.
class GradWInputs final : public GradWPass {
 public:
  GradWInputs(const PassSpec& pass, TileProgram& of_pass, const PassHomes& homes_of_network)
      : GradWPass(pass, GradWExchange::Inputs, of_pass, homes_of_network) {}

  void declare_buffers() override {
    const Dims& splits = spec.grid.splits;
    q_.buffers = {use.q, use.q};
    s_.buffers = {use.s, use.s};
    if (splits.x > 1 || splits.z > 1) q_.buffers[1] = program.add_buffer("second output gradient");
    if (splits.y > 1 || splits.z > 1) s_.buffers[1] = program.add_buffer("second input");
    for (const TileId tile : all) {
      q_.slots[0].push_back(slots_of(tile).q);
      s_.slots[0].push_back(slots_of(tile).s);
    }
    add_second(q_, spec.grid.x_range(0).size());
    add_second(s_, spec.grid.y_range(0).size());
    begin();
    list_usual_exchanges();
  }

  void declare_work() override {
    declare_rounds(Phase::Distribute, /*moved=*/false);
    if (!loop.possible()) return;
    loop.declare_loops(program, [this] {
      declare_moves(q_, Axis::X);
      declare_moves(s_, Axis::Y);
      program.when(
          "this displacement holds something", [this] { return loop.now().compute; },
          [this] { declare_rounds(Phase::Propagate, /*moved=*/true); });
    });
  }

  void begin() override {
    q_.at = s_.at = 0;
    at_ = {};
    round_z_ = 0;  // a run that ended early may have left its rounds in the middle
    clear_first_ = true;
  }

 private:
  void add_second(TravellingOperand& operand, std::int64_t rows) {
    if (operand.buffers[0] == operand.buffers[1]) {
      operand.slots[1] = operand.slots[0];
      return;
    }
    for (const TileId tile : all)
      operand.slots[1].push_back(add_operand_slot(operand.buffers[1], tile, rows));
  }

  // Lists the exchanges of the first round and of the first moves along either axis.
  void list_usual_exchanges() {
    const Dims& splits = spec.grid.splits;
    device::Exchange listed;
    if (splits.z > 1) list_round(0, listed);
    usual_round_ = program.exchange_of(listed.gathers);
    const auto usual_move = [&](const TravellingOperand& operand, bool x, bool is_cut) {
      listed = {};
      if (is_cut) list_move(operand, x, {std::int64_t{x}, std::int64_t{!x}, 0}, listed);
      return program.exchange_of(listed.gathers);
    };
    usual_moves_ = {usual_move(q_, true, splits.x > 1), usual_move(s_, false, splits.y > 1)};
  }

  // Adds a loop of one round for every part of z: an exchange brings the operands of that part to
  // all tiles of the cell, then tiles compute. If z is not cut, a tile has its operands already.
  // After a move an operand may be in either buffer.
  void declare_rounds(Phase phase, bool moved) {
    const auto [q0, q1] = q_.buffers;
    const auto [s0, s1] = s_.buffers;
    const std::vector<BufferId> all_four{q0, s0, q1, s1};
    const bool whole = spec.grid.splits.z == 1;
    Uses seen{moved ? all_four : whole ? std::vector{q0, s0} : std::vector{q1, s1}, {use.sums}};
    // A tile that works on its own cell reads the words in its home slot.
    seen.add({{homes.use.words, use.words_here}, {}});
    if (whole)
      return declare_visit(phase, seen, [this, phase] { visit_all(phase, q_.now(), s_.now()); });
    const Uses sent = moved ? Uses{all_four, all_four} : Uses{{q0, s0}, {q1, s1}};
    program.repeat(
        "a z of the cell is left", [this] { return next_round(); },
        [&] {
          program.exchange(phase, sent, usual_round_, [this, phase] {
            list_round(round_z_ - 1, round_);
            engine.prepare_again(round_);
            engine.exchange(phase, round_);
          });
          declare_visit(phase, seen, [this, phase] { visit_all(phase, q_.free(), s_.free()); });
        });
  }
  void declare_visit(Phase phase, Uses uses, TileProgram::Action action) {
    program.step(NodeKind::Compute, phase, std::move(uses), std::move(action), map.tiles());
  }

  // dQ varies along x and S along y, so a move along an axis moves one operand only.
  void declare_moves(TravellingOperand& operand, Axis axis) {
    const bool x = axis == Axis::X;
    if ((x ? spec.grid.splits.x : spec.grid.splits.y) == 1) return;
    for (std::size_t into = 0; into < 2; ++into)
      program.when(
          fmt::format("the next move is along {}, into the {} buffer", to_string(axis),
                      into == 0 ? "first" : "second"),
          [this, x, into, &operand] { return is_due(x) && operand.at != into; },
          [&] {
            program.exchange(Phase::Propagate,
                             {{operand.buffers[1 - into]}, {operand.buffers[into]}},
                             usual_moves_[x ? 0 : 1], [this, x, &operand] { move(operand, x); });
          });
  }

  // Returns the cell whose operands the tile of cell `c` has at present.
  Cell seen(Cell c) const { return map.moved(c, {at_.x, at_.y, 0}); }

  bool next_round() {
    if (round_z_ == spec.grid.splits.z) {
      round_z_ = 0;
      return false;
    }
    ++round_z_;
    return true;
  }

  void visit_all(Phase phase, const std::vector<SlotId>& q, const std::vector<SlotId>& s) {
    const bool clear = std::exchange(clear_first_, false);
    engine.compute(phase, all, [&](const device::Tile& tile) {
      const auto t = std::size_t(tile.id().value);
      const TileSlots& own = slots_of(tile.id());
      const Cycles cleared = clear ? clear_sums(tile) : Cycles();
      return cleared + visit(tile, {own.meta, own.sums, q[t], s[t], seen(map.cell(tile.id()))});
    });
  }

  // Clears gather `i` and gives it one piece.
  static device::Gather& one_piece(device::Exchange& exchange, std::size_t i, device::Piece piece) {
    device::Gather& gather = exchange.gathers[i];
    gather.pieces.assign(1, piece);
    gather.destinations.clear();
    return gather;
  }

  // Lists the gathers of a round in an exchange, whose storage is reused.
  void list_round(std::int64_t k, device::Exchange& round) const {
    const std::int64_t z_count = spec.grid.splits.z;
    round.gathers.resize(2 * all.size() / std::size_t(z_count));
    std::size_t next = 0;
    for (const TileId tile : all) {
      Cell c = map.cell(tile);
      if (c.z != k) continue;
      const auto source = std::size_t(tile.value);
      const Cell of = seen(c);
      auto& q = one_piece(round, next++, {q_.now()[source], {0, spec.grid.x_range(of.x).size()}});
      auto& s = one_piece(round, next++, {s_.now()[source], {0, spec.grid.y_range(of.y).size()}});
      for (c.z = 0; c.z < z_count; ++c.z) {
        const auto to = std::size_t(map.tile(c).value);
        q.destinations.push_back(q_.free()[to]);
        s.destinations.push_back(s_.free()[to]);
      }
    }
  }

  bool is_due(bool x) const {
    const Displacement& to = loop.now().after;
    return x ? to.x != at_.x : to.y != at_.y;
  }

  // Operands move towards lower indices, opposite to the direction in which buckets would travel.
  void move(TravellingOperand& operand, bool x) {
    const Displacement to = loop.now().after, from = at_;
    TESSERA_ASSERT((to.x != from.x) != (to.y != from.y));
    at_ = {to.x, to.y, 0};
    list_move(operand, x, {to.x - from.x, to.y - from.y, 0}, move_);
    engine.prepare_again(move_);
    engine.exchange(Phase::Propagate, move_);
    operand.at = 1 - operand.at;
  }

  // Lists the gathers of a move `by`; at_ is the displacement after the move.
  void list_move(const TravellingOperand& operand, bool x, Cell by, device::Exchange& move) const {
    move.gathers.resize(all.size());
    for (std::size_t t = 0; t < all.size(); ++t) {
      const Cell c = map.cell(all[t]), of = seen(c);
      const std::int64_t rows = (x ? spec.grid.x_range(of.x) : spec.grid.y_range(of.y)).size();
      const auto from = std::size_t(map.tile(map.moved(c, by)).value);
      one_piece(move, t, {operand.now()[from], {0, rows}})
          .destinations.push_back(operand.free()[t]);
    }
  }

  TravellingOperand q_, s_;
  Displacement at_;
  std::int64_t round_z_ = 0;  // rounds that have begun
  bool clear_first_ = false;
  device::Exchange round_, move_;
  const device::Exchange* usual_round_ = nullptr;
  std::array<const device::Exchange*, 2> usual_moves_{};  // along x and y
};

}  // namespace

std::unique_ptr<GradWPass> make_grad_w_inputs(const PassSpec& spec, TileProgram& program,
                                              const PassHomes& shared) {
  return std::make_unique<GradWInputs>(spec, program, shared);
}

}  // namespace tessera::runtime::internal
