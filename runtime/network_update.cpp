#include "tessera/runtime/internal/network_update.hpp"

#include <array>

#include "tessera/codelets/cost/network_cycles.hpp"

namespace tessera::runtime::internal {

NetworkUpdate::NetworkUpdate(NetworkLayerState& layer, const codelets::Optimiser& optimiser,
                             const NetworkMachine& machine)
    : layer_(layer), optimiser_(optimiser), machine_(machine) {}

void NetworkUpdate::declare() {
  const BufferId gradients = layer_.declare_gradients_at_home();
  Uses uses{{gradients, layer_.weights_buffer()}, {layer_.weights_buffer()}};
  uses.writes.insert(uses.writes.end(), layer_.state_buffers.begin(), layer_.state_buffers.end());
  update_node_ =
      machine_.program.step(NodeKind::Compute, Phase::Update, uses, [this] { update_weights(); });
}

void NetworkUpdate::prepare() {
  for (const UpdatedPart& part : layer_.parts)
    if (part.values.size() > 0) tiles_.push_back(part.tile);
  machine_.program.set_tiles(update_node_, std::ssize(tiles_));
}

void NetworkUpdate::update_weights() {
  machine_.engine.compute(Phase::Update, tiles_, [this](const device::Tile& tile) {
    const UpdatedPart& part = layer_.parts[std::size_t(tile.id().value)];
    const std::int64_t count = part.values.size();
    std::array<float*, codelets::kMostStates> pointers{};
    for (std::size_t s = 0; s < part.states.size(); ++s)
      pointers[s] = floats(tile.view(part.states[s]));
    with_type(layer_.problem.data_type, [&](auto zero) {
      using T = decltype(zero);
      const auto* gradients = reinterpret_cast<const T*>(tile.view(part.gradients).data);
      codelets::update_values<T>(optimiser_, step_, {gradients, std::size_t(count)},
                                 {pointers.data(), part.states.size()},
                                 reinterpret_cast<T*>(tile.view(part.weights).data));
    });
    return codelets::update_cycles(count, optimiser_, layer_.problem.data_type,
                                   machine_.engine.machine().workers);
  });
}

}  // namespace tessera::runtime::internal
