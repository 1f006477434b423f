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
  // A tile that owns rows of a bias. It receives the sums of its row i as elements
  // first_sums[i] .. first_sums[i + 1] of one slot.
  struct Owner {
    TileId tile;
    Range rows;
    std::vector<std::int64_t> first_sums;  // [rows + 1]
    device::SlotId bias, sums;
    std::vector<device::SlotId> states;
    std::vector<float> gradient;  // scratch of update_rows
  };
  struct Layer {
    NetworkLayerState* state = nullptr;
    std::size_t number = 0;  // in the network
    BufferId bias, sums;
    std::vector<BufferId> states;
    std::vector<Owner> owners;  // on the first tiles of the machine

    std::int64_t rows() const { return state->problem.size.x; }
    std::int64_t rows_of_owner() const { return owners.front().rows.size(); }
  };

  Layer* find(std::size_t layer);
  void load(const Layer& layer);
  void collect(const Layer& layer);
  void find_owners(Layer& layer);
  void add_moves_of_sums(const Layer& layer, std::vector<device::Move>& moves) const;
  void add_moves_of_bias(const Layer& layer, std::vector<device::Move>& moves) const;
  Cycles update(const device::Tile& tile);
  Cycles update_rows(const Layer& layer, Owner& owner, const device::Tile& tile) const;

  const codelets::Optimiser& optimiser_;
  TileProgram& program_;
  std::vector<Layer> layers_;  // that have a bias
  std::vector<TileId> owner_tiles_;
};

}  // namespace tessera::runtime::internal
