#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/train/activity.hpp"
#include "tessera/train/layer.hpp"
#include "tessera/train/rewire/density.hpp"

namespace tessera::train {

// A network of fully connected layers with biases, and ReLU after all layers but the last.
struct NetworkOptions {
  std::vector<std::int64_t> sizes;  // inputs, widths of the layers; at least two, each at least 1
  double density = 0.1;             // in (0, 1]
  Distribution distribution = Distribution::Uniform;
  BlockShape block;          // of sparse layers; dense ones are stored in elements
  std::int64_t batch = 128;  // columns of operands, at least 1
  std::uint64_t seed = 1;    // of patterns and first values

  // Blocks that each row and each column of blocks of a sparse layer has at least, first and after
  // rewires, so that no neuron is cut off; at least 0.
  std::int64_t min_per_neuron = 0;

  // True: each row of blocks of a sparse layer has as many blocks as the others, first and after
  // rewires (rewire/rows.hpp). Without min_per_neuron.
  bool constant_fan_in = false;

  // True for a training with a schedule of densities (TrainOptions): layers that are dense at first
  // keep their block, and host_layers() lets a forecast choose the passes that multiply zeros.
  bool density_changes = false;

  // Passes compute in float, or in half on a modelled machine. All that the network keeps is float.
  DataType data_type = DataType::Float;

  friend bool operator==(const NetworkOptions&, const NetworkOptions&) = default;
};

// Returns the problems of a network's layers. Sides that are no multiple of the block are
// padded by the layers. Throws Error{InvalidArgument} as blocks_per_layer does, and for fewer than
// two sizes.
std::vector<Problem> problems_of(const NetworkOptions& options);

// Returns how many blocks each layer stores at a density, by the network's distribution. Throws
// Error{InvalidArgument} as blocks_per_layer does, for fewer than two sizes, and for a density at
// which rows and columns cannot have min_per_neuron blocks.
std::vector<std::int64_t> blocks_at(const NetworkOptions& options, double density);

// Returns the first weights of a network: patterns drawn uniformly, or uniformly in each row for a
// constant fan-in, with the blocks of blocks_per_layer (changed by with_least_per_neuron, if
// min_per_neuron is above 0), and normal values of deviation sqrt(2 / fan-in), with the fan-in that
// each output really has. Parts of blocks beyond a layer are 0.
std::vector<sparse::Csr<float>> first_weights(const NetworkOptions& options);

// Makes the layer of a problem, without weights.
template <class L>
using MakeLayer = std::function<L(const Problem&)>;

// Returns a function that makes layers for this computer. Dense problems get layers whose passes
// multiply all zeros; where densities change, the passes that are forecast to be faster so do,
// which may depend on the number of threads. The executor must outlive the layers.
MakeLayer<host::HostLayer> host_layers(Executor& executor, bool density_changes = false);

// A layer that takes the place of one that cannot prepare a change of its pattern; none if nothing
// changes.
template <TrainableLayer L>
struct NewLayer {
  std::optional<L> layer;
  std::vector<sparse::PlacedBlock> change;

  std::span<const sparse::PlacedBlock> placed() const { return change; }
};

// Names the type of LayerUpdate: NewLayer<L>, or what the layer itself prepares.
template <TrainableLayer L>
struct LayerUpdateOf {
  using Type = NewLayer<L>;
};

// Names what a layer prepares.
template <TrainableLayer L>
  requires requires { typename L::PreparedUpdate; }
struct LayerUpdateOf<L> {
  using Type = typename L::PreparedUpdate;
};

// A change of one layer's pattern that Network::prepare made ready.
template <TrainableLayer L>
using LayerUpdate = typename LayerUpdateOf<L>::Type;

// A network whose layers are of type L (layer.hpp), with operands and scratch memory for one batch.
// Instantiated for host::HostLayer and MachineLayer (machine_layer.hpp). One thread at a time uses
// it. Passes allocate nothing of their own.
//
// Invariant: state(i).gradients has one number for each value of weights(i).
// Example: Network<host::HostLayer> network({.sizes = {784, 1024, 10}}, host_layers(*executor),
//                                           *executor);
template <TrainableLayer L>
class Network {
 public:
  // The state of one layer.
  struct LayerState {
    L layer;
    std::vector<float> gradients;             // in the order of the layer's weights
    std::vector<float> bias, bias_gradients;  // [outputs]
  };

  // Draws first weights; biases are 0. Throws the errors of problems_of and of the layers,
  // Error{InvalidArgument} for a data type that layers of this kind do not train in, and
  // Error{NoSolution} if weights do not fit a layer. The executor runs the loops over operands.
  Network(const NetworkOptions& options, MakeLayer<L> make_layer, Executor& executor);

  const NetworkOptions& options() const { return options_; }
  const std::vector<Problem>& problems() const { return problems_; }
  std::int64_t layers() const { return std::int64_t(states_.size()); }
  LayerState& state(std::int64_t i) { return states_[std::size_t(i)]; }
  const LayerState& state(std::int64_t i) const { return states_[std::size_t(i)]; }
  const sparse::Csr<float>& weights(std::int64_t i) const { return state(i).layer.weights(0); }
  Executor& executor() const { return *executor_; }

  // Returns how many hidden neurons are dead (dead_neurons of rewire/neurons.hpp). O(blocks).
  std::int64_t dead_neurons() const;

  // Returns stored weights / all weights, of all layers together. O(layers).
  double density() const;

  // The input of layer i, [inputs][batch]; that of layer 0 is the caller's to fill, and that of
  // layer layers() are the scores.
  MatrixView<float> input(std::int64_t i) { return inputs_[std::size_t(i)].view(); }
  // The gradient of the output of layer i, [outputs][batch]; that of the last is the caller's to
  // fill.
  MatrixView<float> output_gradient(std::int64_t i) { return gradients_[std::size_t(i)].view(); }

  // Computes the scores from input(0).
  void forward(ActivitySeconds& seconds);

  // Computes the gradients of all weights and biases from output_gradient(layers() - 1), and the
  // other output gradients. Call forward() first.
  void backward(ActivitySeconds& seconds);

  // Returns new layers with these weights, for replace(). Nothing is changed. Throws the errors of
  // set_weights, and Error{NoSolution} if weights do not fit.
  std::vector<L> layers_with(std::span<const sparse::Csr<float>> weights) const;

  // Replaces the layers by those of layers_with(); gradients get the new lengths. Changes
  // everything or, where memory is short, throws std::bad_alloc and changes nothing.
  void replace(std::vector<L>&& layers);

  // Returns the change of a layer's pattern, ready to be made. Nothing is changed. Throws the
  // errors of update_weights, and Error{NoSolution} if the changed weights do not fit the layer.
  LayerUpdate<L> prepare(std::int64_t i, const sparse::PatternChange& change);

  // Makes the changes of all layers, one for each, after which layer i has values[i] values;
  // gradients become 0. Changes everything or, where memory is short, throws std::bad_alloc and
  // changes nothing.
  void commit(std::vector<LayerUpdate<L>>&& updates, std::span<const std::int64_t> values);

 private:
  L layer_with(std::int64_t i, const sparse::Csr<float>& weights) const;

  NetworkOptions options_;
  std::vector<Problem> problems_;
  MakeLayer<L> make_layer_;
  Executor* executor_;
  std::vector<LayerState> states_;
  std::vector<Matrix<float>> inputs_;     // [layers + 1]
  std::vector<Matrix<float>> gradients_;  // [layers]
};

}  // namespace tessera::train
