#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/layer/layer.hpp"
#include "tessera/planner/network.hpp"
#include "tessera/runtime/network.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/train/batch_share.hpp"
#include "tessera/train/made_layer.hpp"
#include "tessera/train/network_options.hpp"
#include "tessera/train/optim/values.hpp"

namespace tessera::train {

// Takes the measured seconds of one kind of work of a layer, counted from 0. Empty: nobody
// measures.
using WorkTimer =
    std::function<void(planner::NetworkWork work, std::int64_t layer, double seconds)>;

// The state of an optimiser for a network: one list for the weights and one for the bias of each
// layer.
struct NetworkState {
  std::vector<ValueState<float>> weights, biases;
};

// A network with operands of type T and scratch memory for one batch. It computes what
// planner::NetworkSpec describes, on layers (layer/layer.hpp) of any target, so the same values as
// runtime::Network on a modelled machine within the rounding of sums in another order. In float,
// bias, ReLU and its derivative are parts of the passes of layers that work on their results
// (layer::LayerFacts); all else takes loops of its own. T is float, Half or BFloat16. A network in
// float may have layers of a modelled machine in half: operands of a pass are then rounded and its
// results widened. Gradients of outputs are first scaled by a power of two, so that the largest is
// near 16, and results are scaled back: small gradients would else become 0. The values that an
// optimiser changes stay floats, and modelled cycles contain no rounding. One thread at a time uses
// it. Passes in one process allocate nothing of their own, but for operands that are rounded.
//
// Invariant: state(i).gradients has one number for each value of weights(i).
// Example: Network network({.sizes = {784, 1024, 10}}, host_layers(*executor), *executor);
template <class T = float>
class Network {
 public:
  // The state of one layer.
  struct LayerState {
    MadeLayer made;
    std::vector<float> gradients;             // in the order of the layer's weights
    std::vector<float> bias, bias_gradients;  // [outputs], 0 without a bias
    Matrix<T> sums;                           // as inputs, if the derivative needs them
    std::array<double, 3> seconds = {};       // of the last run of a pass (layer::Outcome), by Pass

    layer::Layer& layer() { return *made.layer; }
    const layer::Layer& layer() const { return *made.layer; }
  };

  // Draws first weights; biases are 0. Throws the errors of spec_of and of the layers,
  // Error{InvalidArgument} for a data type that layers of this kind do not train in and for layers
  // that recompute or have homes for their operands, and Error{NoSolution} if weights do not fit a
  // layer. The executor runs the loops over operands and must outlive the network.
  Network(const NetworkOptions& options, MakeLayer make_layer, Executor& executor)
      : Network(options, first_weights(options), std::move(make_layer), executor) {}

  // Does the same with weights for each layer, [outputs][inputs] in whole blocks of its block.
  // Those of a layer that the spec calls dense must all be stored. With a share, which must outlive
  // the network, its make_layer() makes the layers, operands have the columns of this process, and
  // gradients are those of the whole batch.
  Network(const NetworkOptions& options, std::span<const sparse::Csr<float>> weights,
          MakeLayer make_layer, Executor& executor, BatchShare* share = nullptr);
  Network(const Network&) = delete;
  Network(Network&&) noexcept = default;

  const NetworkOptions& options() const { return options_; }
  const planner::NetworkSpec& spec() const { return spec_; }
  const std::vector<Problem>& problems() const { return problems_; }
  std::int64_t layers() const { return std::int64_t(states_.size()); }
  LayerState& state(std::int64_t i) { return states_[std::size_t(i)]; }
  const LayerState& state(std::int64_t i) const { return states_[std::size_t(i)]; }
  const sparse::Csr<float>& weights(std::int64_t i) const { return state(i).layer().weights(); }
  Executor& executor() const { return *executor_; }
  BatchShare* share() const { return share_; }
  std::int64_t outputs() const { return spec_.layers.back().outputs; }

  // Returns how many hidden neurons are dead (dead_neurons of rewire/neurons.hpp). O(blocks).
  std::int64_t dead_neurons() const;

  // Returns stored weights / all weights, of all layers together. O(layers).
  double density() const;

  // The input of layer i, [inputs][batch], or a share's columns of the batch; that of layer 0 is
  // the caller's to fill, and that of layer layers() are the scores. Rows of operands but the last
  // have gaps, so that they begin on cache lines.
  MatrixView<T> input(std::int64_t i) { return columns_of(inputs_[std::size_t(i)]); }
  // The gradient of the output of layer i, [outputs][batch]; that of the last is the caller's to
  // fill.
  MatrixView<T> output_gradient(std::int64_t i) { return columns_of(gradients_[std::size_t(i)]); }

  // Computes the scores from input(0).
  void forward(const WorkTimer& timer = {});

  // Computes the gradients of all weights and biases from output_gradient(layers() - 1), and the
  // other output gradients. Call forward() first.
  void backward(const WorkTimer& timer = {});

  // Returns the state of an optimiser before its first step.
  NetworkState first_state(const Optimiser& optimiser) const;

  // Returns true if the lists of a state are those of this optimiser and network.
  bool fits(const Optimiser& optimiser, const NetworkState& state) const;

  // Makes a step of an optimiser on all weights and biases with the gradients of backward(). Biases
  // do not decay. Weights of 16 bits are computed as on a tile: from gradients and values of this
  // type. Throws Error{InvalidArgument} for a state of another optimiser or network.
  void update(const Optimiser& optimiser, NetworkState& state, const WorkTimer& timer = {});

  // Computes the scores of a batch; with a loss also makes a training step by the spec's optimiser,
  // as runtime::Network::run() does. Returns the loss before the step, or 0. Throws
  // Error{InvalidArgument} for a batch that does not belong to the network and if the loss is not
  // finite; parameters are then those of before. Allocates copies of targets.
  float run(const runtime::NetworkBatch& batch, NetworkState& state, const WorkTimer& timer = {});

  // Throws Error{InvalidArgument} if the loss of a step is not finite. The message names the step
  // and the layer whose result has the largest value, and begins with `what`, the name of the loss.
  void check_loss(std::string_view what, std::int64_t step, double loss) const;

  // Returns new layers with these weights, for replace(). Nothing is changed. Throws the errors of
  // set_weights, and Error{NoSolution} if weights do not fit.
  std::vector<MadeLayer> layers_with(std::span<const sparse::Csr<float>> weights) const;

  // Replaces the layers by those of layers_with(); gradients get the new lengths. Changes
  // everything or, where memory is short, throws std::bad_alloc and changes nothing.
  void replace(std::vector<MadeLayer>&& layers);

  // Returns the change of a layer's pattern, ready to be made. Nothing is changed. Throws the
  // errors of update_weights, and Error{NoSolution} if the changed weights do not fit the layer.
  layer::PreparedUpdate prepare(std::int64_t i, const sparse::PatternChange& change);

  // Makes the changes of all layers, one for each; gradients become 0. Changes everything or, where
  // memory is short, throws std::bad_alloc and changes nothing.
  void commit(std::vector<layer::PreparedUpdate>&& updates);

 private:
  // Runs a pass of a layer and keeps its seconds.
  void run_pass(std::int64_t i, Pass pass, const layer::Operands& operands,
                const layer::PassOptions& options = {});
  void differentiate(std::int64_t i, const WorkTimer& timer);
  void sum_biases(std::int64_t i);
  float take_loss(const runtime::NetworkBatch& batch);
  const codelets::ActivationRule& activation(std::int64_t i) const {
    return spec_.layers[std::size_t(i)].activation;
  }
  MatrixView<T> columns_of(Matrix<T>& operand) const {
    return operand.view().sub({0, operand.rows()}, {0, columns_});
  }
  bool has_bias(std::int64_t i) const { return spec_.layers[std::size_t(i)].bias; }
  bool keeps_sums(std::int64_t i) const { return spec_.loss && activation(i).keeps_sums(); }

  NetworkOptions options_;
  planner::NetworkSpec spec_;
  std::vector<Problem> problems_;
  MakeLayer make_layer_;
  Executor* executor_;
  BatchShare* share_ = nullptr;
  std::vector<LayerState> states_;
  std::int64_t columns_ = 0;          // of the batch that this process has
  std::vector<Matrix<T>> inputs_;     // [layers + 1], rows filled up with zeros
  std::vector<Matrix<T>> gradients_;  // [layers]
};

}  // namespace tessera::train
