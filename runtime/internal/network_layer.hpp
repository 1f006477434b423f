#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/runtime/internal/grad_w_base.hpp"
#include "tessera/runtime/internal/layer_weights.hpp"
#include "tessera/runtime/internal/pass_homes.hpp"
#include "tessera/runtime/internal/spmm_state.hpp"
#include "tessera/runtime/internal/tensor_home.hpp"
#include "tessera/runtime/network.hpp"

namespace tessera::runtime::internal {

// The parts of a network's program that are the same for all layers.
struct NetworkMachine {
  BoundProgram& program;
  device::Engine& engine;
  Executor& executor;
};

// The parameters of a layer as they are between two runs.
//   values   [buckets][values_per_bucket] in the layer's type
//   states   of the optimiser: arrays of as many floats as there are values
//   bias     [outputs], and its states
//   steps    training steps since set_weights
struct Parameters {
  std::vector<std::byte> values;
  std::vector<std::vector<float>> states;
  std::vector<float> bias;
  std::vector<std::vector<float>> bias_states;
  std::int64_t steps = 0;

  friend bool operator==(const Parameters&, const Parameters&) = default;
};

// A layer of a network with its passes: its buckets, which all passes share, the homes of its
// operands and results, and its bias and activation. Steps are declared in the order in which they
// run; then slots are added, and exchanges prepared.
class NetworkLayerState {
 public:
  NetworkLayerState(const NetworkLayer& layer, const Problem& problem, const planner::Plan& plan,
                    const NetworkMachine& machine, std::int64_t states);
  NetworkLayerState(const NetworkLayerState&) = delete;
  NetworkLayerState& operator=(const NetworkLayerState&) = delete;

  // These declare buffers and steps.
  void declare_resident();
  void declare_load();
  // Adds the travel words, which passes declare, to the buffers that the load writes.
  void complete_load();
  void declare_fwd() { fwd_.declare(); }
  void declare_activation();
  void declare_derivative();
  void declare_grad_a() { grad_a_->declare(); }
  void declare_grad_w() { grad_w_->declare(); }
  void declare_collect();

  void add_slots();
  void prepare();

  // Loads the parameters, and gives them back after a run.
  void load();
  void collect();

  // True: the gradient of the result needs a step of its own on the tiles of the result.
  bool has_derivative() const { return layer.has_activation_step(); }
  bool has_activation_step() const { return has_derivative(); }
  std::int64_t element() const { return bytes_of(problem.data_type); }
  std::int64_t bucket_bytes() const { return shape_.payload_bytes; }
  std::int64_t values_per_bucket() const { return bucket_bytes() / element(); }

  const NetworkLayer layer;
  const Problem problem;
  LayerWeights weights;
  Parameters parameters, after;  // before and after the current run

  // Homes of the dense tensors: the operand S, the result before and after its activation, its
  // gradient there, the operand dQ, and the result dS of GradA.
  TensorHome in, sums, out, out_grad, q_grad, in_grad;

  // Slots and buffers of the parameters, by tile of the layer.
  std::vector<device::SlotId> values;
  std::vector<std::vector<device::SlotId>> states;  // [state][tile]
  BufferId values_buffer, bias_buffer, row_sums_buffer;
  std::vector<BufferId> state_buffers;
  // Slots for each share of the result: the bias of its rows, and the sums of their gradients.
  std::vector<device::SlotId> bias, row_sums;
  BufferId grad_a_result() const { return grad_a_->reduction.result(); }
  const GradWPass::Base& grad_w() const { return *grad_w_; }
  const TileMap& map() const { return fwd_.map; }

 private:
  void add_parameter_slots();
  void add_operand_slots(TensorHome& home, std::vector<std::byte>& placed, std::int64_t rows);
  void add_result_slots(TensorHome& home);
  void add_bias_slots();
  void activate();
  void differentiate();
  codelets::ElementRun run_of(const HomeShare& share) const {
    return {share.elements.begin, share.elements.end, share.width};
  }
  std::vector<TravelLoop*> loops();
  const HomeShare& share_of_tile(const TensorHome& home, TileId tile) const {
    return home.shares[std::size_t(share_index_[std::size_t(tile.value)])];
  }

  NetworkMachine machine_;
  partitioner::TileGrid grid_;
  BucketShape shape_;
  PassHomes fwd_homes_, grad_a_homes_, grad_w_homes_;
  SpmmPass::State fwd_;
  std::optional<SpmmPass::State> grad_a_;
  std::unique_ptr<GradWPass::Base> grad_w_;
  int load_node_ = 0;
  BufferId words_buffer_, grad_a_words_buffer_;
  std::vector<device::SlotId> words_, grad_a_words_;  // by tile
  std::vector<std::int32_t> share_index_;             // of `out`, by tile
  std::vector<TileId> out_tiles_;
  // In Share mode: the operands S and dQ of all tiles, in the sizes of the grid.
  std::vector<std::byte> in_matrix_, q_grad_matrix_;
};

}  // namespace tessera::runtime::internal
