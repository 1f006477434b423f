#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/runtime/internal/grad_w_base.hpp"
#include "tessera/runtime/internal/network_layout.hpp"
#include "tessera/runtime/internal/pass_homes.hpp"
#include "tessera/runtime/internal/rehome_state.hpp"
#include "tessera/runtime/internal/spmm_state.hpp"
#include "tessera/runtime/internal/tensor_home.hpp"
#include "tessera/runtime/network.hpp"

namespace tessera::runtime::internal {

// The parameters of a layer as they are between two runs.
//   values   of the layout that is updated, [buckets][values_per_bucket] in the layer's type
//   copy     the same values in the other layout, if there are two
//   states   of the optimiser: arrays of as many floats as there are in `values`
//   bias     [outputs], and its states
//   steps    training steps since set_weights
struct Parameters {
  std::vector<std::byte> values, copy;
  std::vector<std::vector<float>> states;
  std::vector<float> bias;
  std::vector<std::vector<float>> bias_states;
  std::int64_t steps = 0;

  friend bool operator==(const Parameters&, const Parameters&) = default;
};

// A layer of a network with its passes: its buckets in one layout or two, the homes of its operands
// and results, and its bias and activation. Steps are declared in the order in which they run; then
// slots are added, and exchanges prepared.
//
// With two layouts, that of transpose(R) runs GradA. The optimiser updates the layout that runs
// GradW, and the new values then move to the other one. GradW also needs the operand that the other
// layout's pass has, S or dQ, in a home of its own.
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
  void declare_rehome() { rehome_->declare(); }
  void declare_grad_w() { grad_w_->declare(); }
  void declare_collect();

  void add_slots();
  void prepare();

  // Encodes weights for all layouts and sets the states of the optimiser to 0. After a misfit or an
  // exception the layer has the weights it had before.
  std::optional<partitioner::Misfit> set_weights(const sparse::CheckedCsr<float>& given);
  Bytes pattern_bytes() const;
  bool has_weights() const { return !forward_.weights.empty(); }
  // Returns the current weights in the given pattern.
  sparse::Csr<float> current_weights();

  // Loads the parameters, and gives them back after a run.
  void load();
  void collect();

  // True: the gradient of the result needs a step of its own on the tiles of the result.
  bool has_derivative() const { return layer.has_activation_step(); }
  bool has_activation_step() const { return has_derivative(); }
  std::int64_t element() const { return bytes_of(problem.data_type); }
  const partitioner::TileGrid& grid() const { return forward_.grid; }

  // The layout that the optimiser updates, and the other one if there are two.
  NetworkLayout& updated() { return updates_transposed() ? *transposed_ : forward_; }
  const NetworkLayout& updated() const { return updates_transposed() ? *transposed_ : forward_; }
  bool has_two_layouts() const { return transposed_.has_value(); }

  const NetworkLayer layer;
  const Problem problem;
  Parameters parameters, after;  // before and after the current run

  // Homes of the dense tensors: the operand S, the result before and after its activation, its
  // gradient there, the operand dQ, and the result dS of GradA. With two layouts, `again` is the
  // home of GradW's own copy of S or dQ, which comes from again_from().
  TensorHome in, sums, out, out_grad, q_grad, in_grad, again;
  const TensorHome& again_from() const { return updates_transposed() ? in : q_grad; }

  // Slots and buffers of the parameters.
  std::vector<std::vector<device::SlotId>> states;  // [state][tile of updated()]
  BufferId bias_buffer, row_sums_buffer;
  std::vector<BufferId> state_buffers;
  // Slots for each share of the result: the bias of its rows, and the sums of their gradients.
  std::vector<device::SlotId> bias, row_sums;
  BufferId grad_a_result() const { return grad_a_->reduction.result(); }
  const GradWPass::Base& grad_w() const { return *grad_w_; }

 private:
  bool updates_transposed() const { return transposed_ && transposed_->problem.grad_w; }
  const NetworkLayout& other() const { return updates_transposed() ? forward_ : *transposed_; }
  void make_passes();
  void make_homes();
  void set_parameters();
  void add_parameter_slots();
  void add_operand_slots(TensorHome& home, std::vector<std::byte>& placed, const Dims& size,
                         std::int64_t rows);
  void give_operand_slots();
  void take_result_slots();
  void load_bias();
  void add_result_slots(TensorHome& home);
  void add_bias_slots();
  void activate();
  void differentiate();
  codelets::ElementRun run_of(const HomeShare& share) const {
    return {share.elements.begin, share.elements.end, share.width};
  }
  const HomeShare& share_of_tile(const TensorHome& home, TileId tile) const {
    return home.shares[std::size_t(share_index_[std::size_t(tile.value)])];
  }

  NetworkMachine machine_;
  NetworkLayout forward_;
  std::optional<NetworkLayout> transposed_;  // of transpose(R)
  PassHomes fwd_homes_, grad_a_homes_, grad_w_homes_;
  SpmmPass::State fwd_;
  std::optional<SpmmPass::State> grad_a_;
  std::unique_ptr<GradWPass::Base> grad_w_;
  RehomeHomes rehome_homes_;
  std::optional<RehomePass::State> rehome_;  // with two layouts
  std::vector<std::int64_t> places_;         // with two: position of each value in transpose(R)
  int load_node_ = 0;
  std::vector<std::int32_t> share_index_;  // of `out`, by tile
  std::vector<TileId> out_tiles_;
  // In Share mode: the operands of all tiles, in the sizes of their grids.
  std::vector<std::byte> in_matrix_, q_grad_matrix_, again_matrix_;
};

}  // namespace tessera::runtime::internal
