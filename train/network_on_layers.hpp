#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/runtime/network.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/train/layer.hpp"

namespace tessera::train {

// The measured time of one kind of work of one layer, counted from 0.
struct WorkSeconds {
  runtime::NetworkWork work = runtime::NetworkWork::Fwd;
  std::int64_t layer = 0;
  double seconds = 0;
};

// A network as runtime::Network describes and runs it, on layers of type L (layer.hpp) with
// operands of type T: the same layers, biases, activations, loss and optimiser, so the same values
// within the rounding of sums in another order. Work between the passes runs on this computer, with
// the functions that the tiles of a modelled machine run. A dense layer is one that stores all
// weights, of density 1, so set_weights() takes all of them. Instantiated for host::HostLayer and
// runtime::FullyConnected, and float, Half and BFloat16. One thread at a time may use a network.
//
// Example: NetworkOnLayers<host::HostLayer, float> network(spec, host_layers(*executor),
// *executor);
template <class L, class T>
  requires Layer<L, T>
class NetworkOnLayers {
 public:
  // Makes a layer for each of problems_of(spec). The executor must outlive the network. Throws
  // Error{InvalidArgument} if the spec is illegal, recomputes, asks for homes of operands or its
  // type is not T, and the errors of the layers. At first no layer has weights, and all biases are
  // 0.
  NetworkOnLayers(const runtime::NetworkSpec& spec,
                  const std::function<L(const Problem&)>& make_layer, Executor& executor);

  const runtime::NetworkSpec& spec() const { return spec_; }

  // Does the same as the functions of runtime::Network with these names.
  std::optional<partitioner::Misfit> set_weights(std::int64_t layer,
                                                 const sparse::Csr<float>& weights);
  void set_bias(std::int64_t layer, std::span<const float> bias);
  sparse::Csr<float> weights(std::int64_t layer) const;
  std::span<const float> bias(std::int64_t layer) const;

  // Runs a training step if the network has a loss, else computes the outputs. Returns the times of
  // its work, in the order in which it ran. Throws Error{InvalidArgument} for a batch that does not
  // belong to the network, before every layer has weights, and if the loss is not finite, as
  // runtime::Network::run() does; parameters are then those of before.
  std::vector<WorkSeconds> run(const runtime::NetworkBatch& batch);

  // Returns the loss of the last run.
  float loss() const { return loss_; }

  // Returns the outputs of the last run, [outputs][batch]; empty with a loss.
  const Matrix<float>& outputs() const { return outputs_; }

 private:
  struct LayerState {
    L layer;
    bool has_weights = false;
    std::int64_t steps = 0;
    Matrix<T> sums, result;        // [outputs][batch]; sums only if the derivative needs them
    Matrix<T> gradient;            // of the result, [outputs][batch]
    std::vector<float> gradients;  // in the order of the layer's weights
    // Lists in the order of the layer's weights: the gradients and values in the type of the layer,
    // the values as floats, and the states of the optimiser.
    std::vector<T> rounded_gradients, values;
    std::vector<float> new_values;
    std::vector<std::vector<float>> states;
    std::vector<float> bias, bias_gradients;
    std::vector<std::vector<float>> bias_states;
  };

  LayerState& at(std::int64_t layer);
  const LayerState& at(std::int64_t layer) const;
  const runtime::NetworkLayer& described(std::int64_t layer) const {
    return spec_.layers[std::size_t(layer)];
  }
  MatrixView<const T> input_of(std::int64_t layer) const;
  void forward(std::int64_t layer);
  void activate(std::int64_t layer);
  void take_loss(const runtime::NetworkBatch& batch);
  void check_loss() const;
  void differentiate(std::int64_t layer);
  void update(std::int64_t layer);
  void update_bias(std::int64_t layer);
  void backward();

  // Runs `work` and adds its time to that of the run.
  template <class Work>
  void timed(runtime::NetworkWork kind, std::int64_t layer, Work&& work);

  runtime::NetworkSpec spec_;
  Executor* executor_;
  std::vector<LayerState> layers_;
  Matrix<T> inputs_;
  Matrix<float> outputs_;
  float loss_ = 0;
  std::vector<WorkSeconds> times_;
};

}  // namespace tessera::train
