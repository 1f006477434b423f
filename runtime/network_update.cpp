#include "tessera/runtime/internal/network_update.hpp"

#include <algorithm>
#include <array>

#include "tessera/codelets/cost/network_cycles.hpp"

namespace tessera::runtime::internal {
namespace {

using device::SlotKind;

}  // namespace

NetworkUpdate::NetworkUpdate(NetworkLayerState& layer, const codelets::UpdateRule& rule,
                             const NetworkMachine& machine)
    : layer_(layer), rule_(rule), machine_(machine) {}

bool NetworkUpdate::gradients_move() const {
  const TileMap &home = layer_.updated().map, &here = layer_.grad_w().map;
  const std::vector<TileId> all = home.all();
  return std::any_of(all.begin(), all.end(),
                     [&](TileId tile) { return home.cell(tile) != here.cell(tile); });
}

void NetworkUpdate::declare() {
  BoundProgram& program = machine_.program;
  device::Engine& engine = machine_.engine;
  gradients_buffer_ = layer_.grad_w().use.result;
  if (gradients_move()) {
    const BufferId computed = gradients_buffer_;
    gradients_buffer_ = program.add_buffer("gradients at home");
    gradients_node_ =
        program.step(NodeKind::Exchange, Phase::Update, {{computed}, {gradients_buffer_}},
                     [&, this] { engine.exchange(Phase::Update, bring_gradients_); });
  }
  Uses uses{{gradients_buffer_, layer_.updated().values_buffer}, {layer_.updated().values_buffer}};
  uses.writes.insert(uses.writes.end(), layer_.state_buffers.begin(), layer_.state_buffers.end());
  program.step(
      NodeKind::Compute, Phase::Update, uses, [this] { update_weights(); },
      layer_.updated().map.tiles());
}

void NetworkUpdate::add_slots() {
  if (gradients_move())
    for (const TileId tile : layer_.updated().map.all())
      gradients_.push_back(machine_.engine.add_slot(
          machine_.program.slot(gradients_buffer_, tile, 1, layer_.updated().bucket_bytes())));
  else
    for (const GradWPass::Base::TileSlots& slots : layer_.grad_w().tiles)
      gradients_.push_back(slots.result);
}

void NetworkUpdate::prepare() {
  if (!gradients_move()) return;
  std::vector<device::Gather> gathers;
  const GradWPass::Base& pass = layer_.grad_w();
  for (const TileId home : layer_.updated().map.all()) {
    const TileId here = pass.map.tile(layer_.updated().map.cell(home));
    gathers.push_back(
        {{{pass.slots_of(here).result, {0, 1}}}, {gradients_[std::size_t(home.value)]}});
  }
  bring_gradients_ = machine_.engine.prepare(std::move(gathers));
  machine_.program.set_moves(gradients_node_, bring_gradients_.moved);
}

void NetworkUpdate::update_weights() {
  machine_.engine.compute(
      Phase::Update, layer_.updated().map.all(), [this](const device::Tile& tile) {
        const auto t = std::size_t(tile.id().value);
        const std::int64_t count = layer_.updated().values_per_bucket();
        std::array<float*, kMostStates> pointers{};
        for (std::size_t s = 0; s < layer_.states.size(); ++s)
          pointers[s] = floats(tile.view(layer_.states[s][t]));
        with_type(layer_.problem.data_type, [&](auto zero) {
          using T = decltype(zero);
          const auto* gradients = reinterpret_cast<const T*>(tile.view(gradients_[t]).data);
          codelets::update_values<T>(
              rule_, step_, {gradients, std::size_t(count)},
              {pointers.data(), layer_.states.size()},
              reinterpret_cast<T*>(tile.view(layer_.updated().values[t]).data));
        });
        return codelets::update_cycles(count, rule_.kind, layer_.problem.data_type,
                                       machine_.engine.machine().workers);
      });
}

}  // namespace tessera::runtime::internal
