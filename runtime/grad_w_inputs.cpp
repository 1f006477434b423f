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
class GradWInputs final : public GradWPass::Base {
 public:
  GradWInputs(const PassSpec& pass, const device::Machine& machine, device::ExchangeMode mode,
              Executor& executor)
      : Base(pass, TileOrder::Xyz, machine, mode, executor) {
    const std::int64_t q_rows = spec.grid.x_range(0).size(), s_rows = spec.grid.y_range(0).size();
    for (const TileId tile : all) {
      const auto landing = [&](const char* name, std::int64_t rows, Phase first) {
        return engine.add_slot(
            {tile, name, rows, row_bytes(), device::SlotKind::Landing, first, kPropagate});
      };
      round_q_.push_back(landing("output gradient of a round", q_rows, kDistribute));
      round_s_.push_back(landing("input of a round", s_rows, kDistribute));
      for (std::size_t b : {0u, 1u}) {
        travel_q_[b].push_back(landing("travelling output gradient", q_rows, kPropagate));
        travel_s_[b].push_back(landing("travelling input", s_rows, kPropagate));
      }
    }
    seal();
  }

  void work(const partitioner::Travel& travel) override {
    engine.compute("distribute", all, [&](const device::Tile& tile) { return clear_sums(tile); });
    for (const TileId tile : all) {
      current_q_.push_back(slots_of(tile).q);
      current_s_.push_back(slots_of(tile).s);
    }
    at_ = {};
    rounds("distribute");
    for (const PropagationStep& step : propagation_steps(travel, spec.grid.splits, Served::NoZ)) {
      go("propagate", step.after);
      if (step.compute) rounds("propagate");
    }
    current_q_.clear(), current_s_.clear();
  }

 private:
  // Whose operands a tile sees now: those of the home of the pieces it holds.
  Cell seen(Cell c) const { return map.moved(c, {at_.x, at_.y, 0}); }

  // One round for every z: the operands of that z to all tiles of the cell, then compute. Where z
  // is not cut a tile has its operands already.
  void rounds(const char* phase) {
    if (spec.grid.splits.z == 1) return compute(phase, current_q_, current_s_);
    for (std::int64_t k = 0; k < spec.grid.splits.z; ++k) {
      engine.exchange(phase, engine.prepare(round_gathers(k)));
      compute(phase, round_q_, round_s_);
    }
  }

  void compute(const char* phase, const std::vector<SlotId>& q, const std::vector<SlotId>& s) {
    engine.compute(phase, all, [&](const device::Tile& tile) {
      const auto t = std::size_t(tile.id().value);
      const TileSlots& own = slots_of(tile.id());
      return visit(tile, {own.meta, own.sums, q[t], s[t], seen(map.cell(tile.id()))});
    });
  }

  std::vector<Gather> round_gathers(std::int64_t k) const {
    const Dims& splits = spec.grid.splits;
    std::vector<Gather> gathers;
    for (std::int64_t x = 0; x < splits.x; ++x)
      for (std::int64_t y = 0; y < splits.y; ++y) {
        const auto source = std::size_t(map.tile({x, y, k}).value);
        const Cell of = seen({x, y, k});
        Gather q{{{current_q_[source], {0, spec.grid.x_range(of.x).size()}}}, {}};
        Gather s{{{current_s_[source], {0, spec.grid.y_range(of.y).size()}}}, {}};
        for (std::int64_t z = 0; z < splits.z; ++z) {
          const auto to = std::size_t(map.tile({x, y, z}).value);
          q.destinations.push_back(round_q_[to]);
          s.destinations.push_back(round_s_[to]);
        }
        gathers.push_back(std::move(q));
        gathers.push_back(std::move(s));
      }
    return gathers;
  }

  // Operands move against the buckets' direction: towards lower indices. dQ varies along x and S
  // along y, so a shift moves only one of them; both change buffers on their own.
  void go(const char* phase, Displacement to) {
    std::vector<Gather> gathers;
    const Displacement from = std::exchange(at_, Displacement{to.x, to.y, 0});
    if (to.x != from.x) move(gathers, current_q_, travel_q_, {to.x - from.x, 0, 0}, true);
    if (to.y != from.y) move(gathers, current_s_, travel_s_, {0, to.y - from.y, 0}, false);
    if (!gathers.empty()) engine.exchange(phase, engine.prepare(std::move(gathers)));
  }

  void move(std::vector<Gather>& gathers, std::vector<SlotId>& current,
            const std::array<std::vector<SlotId>, 2>& buffers, Cell by, bool q_side) const {
    const auto& next = buffers[0] == current ? buffers[1] : buffers[0];
    for (const TileId tile : all) {
      const Cell c = map.cell(tile), of = seen(c);
      const TileId from = map.tile(map.moved(c, by));
      const Range rows = q_side ? spec.grid.x_range(of.x) : spec.grid.y_range(of.y);
      gathers.push_back({{{current[std::size_t(from.value)], {0, rows.size()}}},
                         {next[std::size_t(tile.value)]}});
    }
    current = next;
  }

  std::vector<SlotId> round_q_, round_s_;
  std::array<std::vector<SlotId>, 2> travel_q_, travel_s_;
  std::vector<SlotId> current_q_, current_s_;
  Displacement at_;
};

}  // namespace

std::unique_ptr<GradWPass::Base> make_grad_w_inputs(const PassSpec& spec,
                                                    const device::Machine& machine,
                                                    device::ExchangeMode mode, Executor& executor) {
  return std::make_unique<GradWInputs>(spec, machine, mode, executor);
}

}  // namespace tessera::runtime::internal
