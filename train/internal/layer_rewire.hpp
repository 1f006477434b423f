#pragma once

#include <cstdint>
#include <vector>

#include "tessera/layer/layer.hpp"
#include "tessera/train/network.hpp"
#include "tessera/train/rewire/method.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train::internal {

// The facts that the layers of a network share in a step that rewires.
struct RewireStep {
  const TrainOptions& options;
  Optimiser optimiser;    // with the learning rate of the step
  std::int64_t step = 0;  // counted from 1
  double fraction = 0;
};

// The rewire of one layer, computed beside its weights.
struct LayerRewire {
  Rewired rewired;
  layer::PreparedUpdate update;
  ValueState<float> state;              // of the optimiser, after the rewire
  std::vector<std::int64_t> positions;  // of the new weights that have values, ascending

  // Gives the layer, which has made the change, the values that new weights begin with.
  void set_first_values(layer::Layer& layer) const;
};

// Computes the rewire of layer i, after which it stores so many blocks (-1: as many as before),
// from the state of its optimiser. Nothing is changed. Throws the errors of rewire() and of
// Network::prepare.
LayerRewire rewire_layer(Network<>& network, std::int64_t i, std::int64_t blocks,
                         const RewireStep& now, const ValueState<float>& state);

}  // namespace tessera::train::internal
