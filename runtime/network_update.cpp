#include "tessera/runtime/internal/network_update.hpp"

#include <array>

#include "tessera/codelets/cost/network_cycles.hpp"

namespace tessera::runtime::internal {

NetworkUpdate::NetworkUpdate(NetworkLayerState& layer, const codelets::Optimiser& optimiser,
                             const NetworkMachine& machine)
    : layer_(layer), optimiser_(optimiser), machine_(machine) {}

void NetworkUpdate::declare() {
  const BufferId gradients = layer_.declare_gradients_at_home();
  for (const UpdatedPart& part : layer_.parts)
    if (part.values.size() > 0) tiles_.push_back(part.tile);
  const BufferId weights = layer_.value_buffers().front();
  Uses uses{{gradients, weights}, {weights}};
  uses.writes.insert(uses.writes.end(), layer_.state_buffers.begin(), layer_.state_buffers.end());
  machine_.program.compute(Phase::Update, std::move(uses), tiles_,
                           [this](const device::Tile& tile) { return update_weights(tile); });
}

Cycles NetworkUpdate::update_weights(const device::Tile& tile) const {
  const UpdatedPart& part = layer_.parts[std::size_t(tile.id().value)];
  const std::int64_t count = part.values.size();
  std::array<float*, codelets::kMostStates> pointers{};
  for (std::size_t s = 0; s < part.states.size(); ++s)
    pointers[s] = floats(tile.view(part.states[s]));
  with_type(layer_.problem.data_type, [&]<class T>(T) {
    const auto* gradients = reinterpret_cast<const T*>(tile.view(part.gradients).data);
    codelets::update_values<T>(optimiser_, step_, {gradients, std::size_t(count)},
                               {pointers.data(), part.states.size()},
                               reinterpret_cast<T*>(tile.view(part.weights).data));
  });
  return codelets::update_cycles(count, optimiser_, layer_.problem.data_type,
                                 machine_.engine().machine().workers);
}

}  // namespace tessera::runtime::internal
