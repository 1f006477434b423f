#pragma once

#include <vector>

#include "tessera/runtime/internal/network_layer.hpp"

namespace tessera::runtime::internal {

// The step of the optimiser for one layer.
//   weights  If a tile computed gradients of another tile's bucket, one exchange brings them home.
//            Each tile then changes the values of its bucket. One compute step.
//   bias     The rows are cut equally over tiles, which own them. One exchange brings the sums of
//            the tiles' rows to the owners. Each owner adds up the sums of its rows in the order of
//            the tiles and changes the bias. One compute step. One exchange sends it back to all
//            tiles that add it.
class NetworkUpdate {
 public:
  // The layer must outlive this object.
  NetworkUpdate(NetworkLayerState& layer, const codelets::UpdateRule& rule,
                const NetworkMachine& machine);

  void declare_resident();
  void declare_load();
  void declare();
  void declare_collect();
  void add_slots();
  void prepare();

  // Sets the number of the step, counted from 1.
  void set_step(std::int64_t step) { step_ = step; }

 private:
  // A tile that owns rows of the bias. entry_rows has, for each sum that it receives, the row that
  // the sum belongs to, counted from the first of its own.
  struct Owner {
    TileId tile;
    Range rows;
    std::vector<std::int32_t> entry_rows;
    device::SlotId bias, sums;
    std::vector<device::SlotId> states;
    std::vector<float> gradient;  // scratch of update_rows
  };

  void load();
  void collect();
  void update_weights();
  void update_bias();
  Cycles update_rows(Owner& owner, const device::Tile& tile) const;
  void add_bias_slots();
  void prepare_bias();
  void prepare_gradients();
  bool gradients_move() const;

  NetworkLayerState& layer_;
  codelets::UpdateRule rule_;
  NetworkMachine machine_;
  std::int64_t step_ = 0;
  BufferId gradients_buffer_, bias_buffer_, sums_buffer_;
  std::vector<BufferId> bias_state_buffers_;
  std::vector<device::SlotId> gradients_;  // of the bucket at home, by tile
  std::vector<Owner> owners_;
  std::vector<TileId> owner_tiles_;
  device::Exchange bring_gradients_, bring_sums_, send_bias_;
  int gradients_node_ = -1, sums_node_ = -1, send_node_ = -1;
};

}  // namespace tessera::runtime::internal
