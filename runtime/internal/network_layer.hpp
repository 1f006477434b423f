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

// A layer of a network with its passes: its buckets in one layout or two, the homes of its results,
// and its bias and activation. Steps are declared in the order in which they run; then slots are
// added, and exchanges prepared. Passes fetch their operands from the results of other layers.
//
// With two layouts, that of transpose(R) runs GradA. The optimiser updates the layout that runs
// GradW, and the new values then move to the other one.
class NetworkLayerState {
 public:
  NetworkLayerState(const NetworkLayer& layer, const Problem& problem, const planner::Plan& plan,
                    const NetworkMachine& machine, std::int64_t states);
  NetworkLayerState(const NetworkLayerState&) = delete;
  NetworkLayerState& operator=(const NetworkLayerState&) = delete;

  // Sets the home of the operand S, and in a training step the homes of the gradient of the result
  // before and after its derivative has been taken there (dQ), and of what the derivative needs
  // from the forward pass; null: nothing. The homes must outlive the layer.
  // GradW takes S or dQ from the slices that Fwd or GradA has fetched in the same layout, if each
  // of them is needed by one tile only, which is the one that needs it in GradW too.
  void set_input(const TensorHome& input);
  void set_gradient(const TensorHome& gradient, const TensorHome* kept);

  // GradA's first exchange also brings a tensor of the layer before to the home of GradA's result.
  void bring_with_grad_a(const TensorHome& from, const TensorHome& to);

  // These declare buffers and steps.
  void declare_resident();
  void declare_load();
  // Adds the travel words, which passes declare, to the buffers that the load writes.
  void complete_load();
  void declare_fwd() { fwd_.declare(); }
  void declare_activation();
  void declare_derivative();
  void declare_grad_a();
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

  // Homes of the dense tensors: the result before and after its activation; its gradient there,
  // which only the last layer has; the result dS of GradA; and there the sums or results of the
  // layer before, for its derivative.
  TensorHome sums, out, out_grad, in_grad, kept_before;
  // The home of dQ, where the derivative is taken.
  const TensorHome& gradient() const { return *gradient_; }

  // Slots and buffers of the parameters.
  std::vector<std::vector<device::SlotId>> states;  // [state][tile of updated()]
  BufferId bias_buffer, row_sums_buffer;
  std::vector<BufferId> state_buffers;
  // The bias of the rows of each share of the result, and the sums of the rows of each share of dQ.
  std::vector<device::SlotId> bias, row_sums;
  const GradWPass::Base& grad_w() const { return *grad_w_; }

 private:
  bool updates_transposed() const { return transposed_ && transposed_->problem.grad_w; }
  const NetworkLayout& other() const { return updates_transposed() ? forward_ : *transposed_; }
  void make_passes();
  void make_homes();
  void set_parameters();
  void add_parameter_slots();
  void take_result_slots();
  void load_bias();
  void add_result_slots(TensorHome& home);
  void add_bias_slots();
  void activate();
  void differentiate();
  codelets::ElementRun run_of(const HomeShare& share) const {
    return {share.elements.begin, share.elements.end, share.width};
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
  const TensorHome *gradient_ = nullptr, *kept_ = nullptr;
  SharesByTile out_shares_, gradient_shares_;
};

}  // namespace tessera::runtime::internal
