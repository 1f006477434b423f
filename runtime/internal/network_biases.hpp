#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tessera/runtime/internal/network_layer.hpp"

namespace tessera::runtime::internal {

// The step of the optimiser for the biases of all layers. The rows of each layer are cut equally
// over tiles, which own them. One exchange brings the sums of the tiles' rows to the owners. Each
// owner adds up the sums of each row in the order of the tiles and changes the bias. One compute
// step. One exchange sends it back to all tiles that add it.
class NetworkBiases {
 public:
  // The layers and the optimiser, whose learning rate may change, must outlive this object.
  NetworkBiases(std::span<const std::unique_ptr<NetworkLayerState>> layers,
                const codelets::Optimiser& optimiser, TileProgram& program);

  bool empty() const { return layers_.empty(); }

  // Declare the buffers of a layer and their load.
  void declare_resident(std::size_t layer);
  // Declares the steps of all layers.
  void declare();
  void declare_collect();

 private:
  // The sums of the gradient of row i are elements first_sums[i] .. first_sums[i + 1] of a tensor,
  // which the owners of the rows have.
  struct Layer {
    NetworkLayerState* state = nullptr;
    std::size_t number = 0;  // in the network
    TensorHome bias, sums;   // each share on its owner, which are the first tiles of the machine
    std::vector<TensorHome> states;
    std::vector<std::int64_t> first_sums;      // [rows + 1]
    std::vector<std::vector<float>> gradient;  // by owner: scratch of update_rows
  };

  Layer* find(std::size_t layer);
  void load(const Layer& layer);
  void collect(const Layer& layer);
  void declare_sums(Layer& layer, std::vector<device::Move>& moves);
  Cycles update(const device::Tile& tile);
  Cycles update_rows(Layer& layer, std::size_t owner, const device::Tile& tile) const;

  const codelets::Optimiser& optimiser_;
  TileProgram& program_;
  std::vector<Layer> layers_;        // that have a bias
  std::vector<TileId> owner_tiles_;  // of any layer
};

}  // namespace tessera::runtime::internal
