#pragma once

#include <vector>

#include "tessera/runtime/internal/network_layer.hpp"

namespace tessera::runtime::internal {

inline float* floats(const device::ByteRows& rows) { return reinterpret_cast<float*>(rows.data); }

// The step of the optimiser for the weights of one layer. If a tile computed gradients of another
// tile's bucket, one exchange brings them home. Each tile then changes the values that it has. One
// compute step.
class NetworkUpdate {
 public:
  // The layer and the optimiser, whose learning rate may change, must outlive this object.
  NetworkUpdate(NetworkLayerState& layer, const codelets::Optimiser& optimiser,
                const NetworkMachine& machine);

  void declare();

  // Sets the number of the step, counted from 1.
  void set_step(std::int64_t step) { step_ = step; }

 private:
  Cycles update_weights(const device::Tile& tile) const;

  NetworkLayerState& layer_;
  const codelets::Optimiser& optimiser_;
  NetworkMachine machine_;
  std::int64_t step_ = 0;
  std::vector<TileId> tiles_;  // that have values
};

}  // namespace tessera::runtime::internal
