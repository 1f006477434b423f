#include <array>
#include <utility>
#include <vector>

#include "tessera/runtime/internal/grad_w_base.hpp"
#include "tessera/runtime/propagation.hpp"

namespace tessera::runtime::internal {
namespace {

using device::Gather;
using device::SlotId;

// GradW by moving operands: words and sums stay; the operands of the cells whose non-zeros a tile
// holds come by, one z at a time.
// Invariant: q_[q_at_] holds, on every tile, the output gradient of the x that is seen there now,
// and q_[1 - q_at_] is free: a shift or a round writes it. The same for s_ and y.
class GradWInputs final : public GradWPass::Base {
 public:
  GradWInputs(const PassSpec& pass, const device::Machine& machine, device::ExchangeMode mode,
              Executor& executor)
      : Base(pass, TileOrder::Xyz, machine, mode, executor) {
    const Dims& splits = spec.grid.splits;
    for (const TileId tile : all) {
      q_[0].push_back(slots_of(tile).q);
      s_[0].push_back(slots_of(tile).s);
    }
    q_[1] = splits.x > 1 || splits.z > 1
                ? add_second("second output gradient", spec.grid.x_range(0).size())
                : q_[0];
    s_[1] = splits.y > 1 || splits.z > 1 ? add_second("second input", spec.grid.y_range(0).size())
                                         : s_[0];
    seal();
  }

  void work(const partitioner::Travel& travel) override {
    q_at_ = s_at_ = 0;
    at_ = {};
    clear_first_ = true;
    engine.begin_phase(kDistribute);
    rounds("distribute");
    engine.begin_phase(kPropagate);
    for (const PropagationStep& step : propagation_steps(travel, spec.grid.splits, Served::NoZ)) {
      go("propagate", step.after);
      if (step.compute) rounds("propagate");
    }
  }

 private:
  std::vector<SlotId> add_second(const char* name, std::int64_t rows) {
    std::vector<SlotId> slots;
    for (const TileId tile : all)
      slots.push_back(engine.add_slot(
          {tile, name, rows, row_bytes(), device::SlotKind::Landing, kDistribute, kPropagate}));
    return slots;
  }

  // Whose operands a tile sees now: those of the home of the pieces it holds.
  Cell seen(Cell c) const { return map.moved(c, {at_.x, at_.y, 0}); }

  // One round for every z: the operands of that z to all tiles of the cell, then compute. Where z
  // is not cut a tile has its operands already.
  void rounds(const char* phase) {
    if (spec.grid.splits.z == 1) return compute(phase, q_[q_at_], s_[s_at_]);
    for (std::int64_t k = 0; k < spec.grid.splits.z; ++k) {
      engine.exchange(phase, engine.prepare(round_gathers(k)));
      compute(phase, q_[1 - q_at_], s_[1 - s_at_]);
    }
  }

  void compute(const char* phase, const std::vector<SlotId>& q, const std::vector<SlotId>& s) {
    const bool clear = std::exchange(clear_first_, false);
    engine.compute(phase, all, [&](const device::Tile& tile) {
      const auto t = std::size_t(tile.id().value);
      const TileSlots& own = slots_of(tile.id());
      const Cycles cleared = clear ? clear_sums(tile) : Cycles();
      return cleared + visit(tile, {own.meta, own.sums, q[t], s[t], seen(map.cell(tile.id()))});
    });
  }

  std::vector<Gather> round_gathers(std::int64_t k) const {
    std::vector<Gather> gathers;
    for (const TileId tile : all) {
      Cell c = map.cell(tile);
      if (c.z != k) continue;
      const auto source = std::size_t(tile.value);
      const Cell of = seen(c);
      Gather q{{{q_[q_at_][source], {0, spec.grid.x_range(of.x).size()}}}, {}};
      Gather s{{{s_[s_at_][source], {0, spec.grid.y_range(of.y).size()}}}, {}};
      for (c.z = 0; c.z < spec.grid.splits.z; ++c.z) {
        const auto to = std::size_t(map.tile(c).value);
        q.destinations.push_back(q_[1 - q_at_][to]);
        s.destinations.push_back(s_[1 - s_at_][to]);
      }
      gathers.push_back(std::move(q));
      gathers.push_back(std::move(s));
    }
    return gathers;
  }

  // Operands move against the buckets' direction: towards lower indices. dQ varies along x and S
  // along y, so a shift moves only one of them.
  void go(const char* phase, Displacement to) {
    std::vector<Gather> gathers;
    const Displacement from = std::exchange(at_, Displacement{to.x, to.y, 0});
    if (to.x != from.x) move_q(gathers, {to.x - from.x, 0, 0});
    if (to.y != from.y) move_s(gathers, {0, to.y - from.y, 0});
    if (!gathers.empty()) engine.exchange(phase, engine.prepare(std::move(gathers)));
  }

  void move_q(std::vector<Gather>& gathers, Cell by) {
    for (const TileId tile : all) {
      const Cell c = map.cell(tile);
      gathers.push_back({{{q_[q_at_][std::size_t(map.tile(map.moved(c, by)).value)],
                           {0, spec.grid.x_range(seen(c).x).size()}}},
                         {q_[1 - q_at_][std::size_t(tile.value)]}});
    }
    q_at_ = 1 - q_at_;
  }

  void move_s(std::vector<Gather>& gathers, Cell by) {
    for (const TileId tile : all) {
      const Cell c = map.cell(tile);
      gathers.push_back({{{s_[s_at_][std::size_t(map.tile(map.moved(c, by)).value)],
                           {0, spec.grid.y_range(seen(c).y).size()}}},
                         {s_[1 - s_at_][std::size_t(tile.value)]}});
    }
    s_at_ = 1 - s_at_;
  }

  std::array<std::vector<SlotId>, 2> q_, s_;  // by tile
  std::size_t q_at_ = 0, s_at_ = 0;
  Displacement at_;
  bool clear_first_ = false;
};

}  // namespace

std::unique_ptr<GradWPass::Base> make_grad_w_inputs(const PassSpec& spec,
                                                    const device::Machine& machine,
                                                    device::ExchangeMode mode, Executor& executor) {
  return std::make_unique<GradWInputs>(spec, machine, mode, executor);
}

}  // namespace tessera::runtime::internal
