#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/saved_weights.hpp"
#include "tessera/runtime/internal/pass_homes.hpp"
#include "tessera/runtime/internal/reduce.hpp"
#include "tessera/runtime/internal/tensor_home.hpp"
#include "tessera/runtime/network.hpp"
#include "tessera/sparse/checked.hpp"

namespace tessera::runtime::internal {

// The parameters of a layer as they are between two runs.
//   values   in the layer's type, one UpdatedPart after the other in the order of the buckets
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

// The weights that one tile keeps and updates: elements `values` of Parameters::values, in a slot
// with rows of `row_bytes`.
struct UpdatedPart {
  TileId tile;
  Range values;
  std::int64_t row_bytes = 1;
  device::SlotId weights, gradients;
  std::vector<device::SlotId> states;
};

// A layer of a network with its passes: the homes of its results, its bias and its activation. The
// kinds of layers (network_sparse_layer.hpp, network_dense_layer.hpp) have weights and passes.
// Steps are declared in the order in which they run, with their buffers and slots. Passes fetch
// their operands from the results of other layers.
//
// A layer that recomputes has a second forward pass, which runs in front of the backward passes of
// the next layer. Its result, and not that of the first one, is what backward passes read.
class NetworkLayerState {
 public:
  // In a training step the optimiser, whose learning rate may change, must outlive the layer; in
  // other networks it is null. The program must outlive it too.
  NetworkLayerState(const NetworkLayer& layer, const Problem& problem,
                    const codelets::Optimiser* optimiser, TileProgram& program);
  NetworkLayerState(const NetworkLayerState&) = delete;
  NetworkLayerState& operator=(const NetworkLayerState&) = delete;
  virtual ~NetworkLayerState() = default;

  // A turn says whether a forward pass comes before the loss or recomputes.
  enum class Turn { First, Again };

  bool has_own_homes() const { return layer.operands != Placement::AsLeft; }

  // Set the home of the operand S in the forward pass and in the backward passes, and in a training
  // step the homes of the gradient of the result before and after its derivative has been taken
  // there, and of what the derivative needs from the forward pass (null: nothing); and the home
  // from which the passes fetch dQ. The homes must outlive the layer.
  virtual void set_input(const TensorHome& input, const TensorHome& in_backward);
  void set_gradient(const TensorHome& gradient, const TensorHome* kept);
  virtual void set_dq(const TensorHome& dq);

  // GradA's first exchange also brings a tensor of the layer before to `kept_before`.
  void bring_with_grad_a(const TensorHome& from) { grad_a_homes_.beside = {&from, &kept_before}; }

  // These declare buffers, slots and steps.
  void declare_resident();
  virtual void declare_load();
  // Adds the travel words, which passes declare, to the buffers that the load writes.
  virtual void complete_load() {}
  void declare_fwd(Turn turn) { declare_product(Pass::Fwd, turn).give_slots(sums_of(turn)); }
  void declare_activation(Turn turn);
  void declare_derivative();
  void declare_grad_a();
  virtual void declare_grad_w() = 0;
  // The step of the optimiser for the weights: each tile changes the values that it has.
  void declare_update();
  virtual void declare_rehome() {}
  void declare_collect();

  // Encodes weights and sets the states of the optimiser to 0. After a misfit or an exception the
  // layer has the weights it had before.
  virtual std::optional<partitioner::Misfit> set_weights(
      const sparse::CheckedCsr<float>& given) = 0;
  virtual bool has_weights() const = 0;

  // Return and take encoded weights, as Network::saved_weights and restore_weights do. The message
  // of an error does not name the layer. By default the layer has no buckets.
  virtual partitioner::SavedWeights saved_weights() const;
  virtual void restore_weights(const partitioner::SavedWeights& saved);

  // Returns the current weights in the given pattern; those of a dense layer are all stored.
  virtual sparse::Csr<float> current_weights() = 0;

  // Return what the host sends for a new pattern (words, values and tables), and the values and
  // states that it reads. 0 if the layer is dense.
  virtual Bytes pattern_bytes() const = 0;
  virtual Bytes value_bytes() const = 0;
  Bytes state_bytes() const;

  // Returns by how much the multiplications of a pass with the current weights, counted from the
  // words of all buckets without running anything, exceed those that `plan` expects.
  virtual Cycles multiply_excess(const planner::Plan& plan, Pass pass) const;

  // Loads the parameters, and gives them back after a run; the weights of all parts among them.
  virtual void load();
  void collect();

  // True: the result and its gradient need a step of their own on the tiles of the result.
  bool has_activation_step() const { return layer.has_activation_step(); }
  std::int64_t element() const { return bytes_of(problem.data_type); }
  virtual bool has_two_layouts() const { return false; }
  bool recomputes() const { return layer.recompute; }

  const NetworkLayer layer;
  const Problem problem;
  Parameters parameters, after;  // before and after the current run

  // Homes of the dense tensors: the result before and after its activation, of both forward passes;
  // its gradient there, which only the last layer has; the result dS of GradA; and there the sums
  // or results of the layer before, for its derivative.
  TensorHome sums, out, sums_again, out_again, out_grad, in_grad, kept_before;
  // The result that backward passes read.
  const TensorHome& sums_in_backward() const { return recomputes() ? sums_again : sums; }
  const TensorHome& out_in_backward() const { return recomputes() ? out_again : out; }
  // The home of the gradient of the result, where the derivative is taken.
  const TensorHome& gradient() const { return *gradient_; }

  // Slots and buffers of the parameters.
  std::vector<UpdatedPart> parts;   // by tile; a part without values has no slots
  std::vector<UpdatedPart> copies;  // of the layout that is not updated, without states
  std::vector<BufferId> state_buffers;
  // The bias of the rows of each share of the result, and the sums of the rows of each share of dQ.
  TensorHome bias, row_sums;
  // Those of the values of R: first the buffer that the optimiser updates, then that of their copy.
  virtual std::vector<BufferId> value_buffers() const = 0;

 protected:
  // The parts of declare_resident() and declare_load() that the kinds of layers add: weights and
  // `parts`, without gradients.
  virtual void declare_weights() = 0;
  virtual void add_loaded(Uses& uses) const = 0;

  // Declares Fwd, which runs in this turn, or GradA. Returns what adds up its result.
  virtual const Reduction& declare_product(Pass pass, Turn turn) = 0;
  // Brings the gradients to the tiles of the values, if they are not there. Returns their buffer.
  virtual BufferId declare_gradients_at_home() = 0;

  // Sets the homes of the results, which must not have slots yet. `in_gradient` is that of dS.
  void set_result_homes(const TensorHome& result, const TensorHome* in_gradient);
  TensorHome& sums_of(Turn turn) { return turn == Turn::First ? sums : sums_again; }
  // Sets the states of the optimiser to 0, for this number of values.
  void reset_states(std::int64_t values);

  PassHomes fwd_homes_, again_homes_, grad_a_homes_, grad_w_homes_;
  TileProgram& program_;
  std::size_t state_count_;
  int load_node_ = 0;
  const TensorHome *gradient_ = nullptr, *kept_ = nullptr;

 private:
  TensorHome& out_of(Turn turn) { return turn == Turn::First ? out : out_again; }
  Cycles activate(Turn turn, const device::Tile& tile);
  Cycles differentiate(const device::Tile& tile) const;
  Cycles update(const device::Tile& tile) const;

  const codelets::Optimiser* optimiser_;
  SharesByTile out_shares_, gradient_shares_;
  std::vector<TileId> updated_tiles_;  // that have values
};

}  // namespace tessera::runtime::internal
