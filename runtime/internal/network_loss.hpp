#pragma once

#include <vector>

#include "tessera/runtime/internal/hand_over.hpp"
#include "tessera/runtime/internal/network_layer.hpp"

namespace tessera::runtime::internal {

// The loss of a batch. The outputs are handed over to tiles that hold whole columns; one compute
// step there replaces them by their gradients.
class NetworkLoss {
 public:
  // The layer is the last one and must outlive this object.
  NetworkLoss(codelets::Loss loss, const NetworkLayerState& last, TileProgram& program);

  void declare_load();
  void declare();

  // Sets the batch of the next run, which must stay valid until the run ends.
  void set_batch(const NetworkBatch& batch) { batch_ = &batch; }

  // The gradients of the outputs.
  const TensorHome& home() const { return home_; }
  float loss() const { return loss_; }

 private:
  std::int64_t rows() const { return home_.rows; }
  void load();
  Cycles compute(const device::Tile& tile) const;
  void collect();

  codelets::Loss kind_;
  const NetworkLayerState& last_;
  TileProgram& program_;
  TensorHome home_, wanted_;  // wanted_: a row of labels, or targets
  Fetches bring_;
  std::vector<TileId> tiles_;
  BufferId loss_buffer_;
  std::vector<device::SlotId> losses_;  // by share
  const NetworkBatch* batch_ = nullptr;
  float loss_ = 0;
};

}  // namespace tessera::runtime::internal
