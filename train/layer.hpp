#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>

#include "tessera/base/matrix.hpp"
#include "tessera/host/change_part.hpp"
#include "tessera/host/pass_options.hpp"
#include "tessera/layer/layer.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/run_options.hpp"

namespace tessera::train {

// A sparse fully connected layer whose pattern may change, with operands of type T: float, Half or
// BFloat16. host::HostLayer computes it on this computer and runtime::FullyConnected on a modelled
// machine; a training loop that is written for the concept compiles for both. Their headers say
// what each function costs. All layers agree in this:
//   * An argument that does not belong to the layer is Error{InvalidArgument}, a matrix that is not
//     canonical Error{BadInput}; the layer is then as it was before the call.
//   * set_weights and update_weights return what did not fit; the layer then has its old weights.
//     On this computer every pattern fits.
//   * Gradients and values are lists in the order of weights(group).values; grad_w writes those of
//     all groups, one group after the other.
//   * Passes that take options overwrite `cost`, and return false when they were stopped.
template <class L, class T = float>
concept Layer =
    requires(L layer, const L& constant, std::span<const sparse::CheckedCsr<float>> weights,
             const sparse::Csr<float>& matrix, const sparse::PatternChange& change,
             std::span<const float> values, std::span<float> gradients, MatrixView<const T> in,
             MatrixView<T> out, const layer::PassOptions& options, typename L::Cost& cost,
             std::int64_t group) {
      { layer.set_weights(weights) } -> std::same_as<std::optional<partitioner::Misfit>>;
      { layer.set_weights(matrix) } -> std::same_as<std::optional<partitioner::Misfit>>;
      { layer.update_weights(change) } -> std::same_as<std::optional<partitioner::Misfit>>;
      { layer.update_weights(change, group) } -> std::same_as<std::optional<partitioner::Misfit>>;
      { layer.set_values(values) } -> std::same_as<void>;
      { layer.set_values(values, group) } -> std::same_as<void>;

      { layer.template forward<T>(in, out) } -> std::same_as<typename L::Cost>;
      { layer.template grad_a<T>(in, out) } -> std::same_as<typename L::Cost>;
      { layer.template grad_w<T>(in, in, gradients) } -> std::same_as<typename L::Cost>;
      { layer.template forward<T>(in, out, options, cost) } -> std::same_as<bool>;
      { layer.template grad_a<T>(in, out, options, cost) } -> std::same_as<bool>;
      { layer.template grad_w<T>(in, in, gradients, options, cost) } -> std::same_as<bool>;

      { constant.batch() } -> std::same_as<std::int64_t>;
      { constant.values() } -> std::same_as<std::int64_t>;
      { constant.weights(group) } -> std::same_as<const sparse::Csr<float>&>;
      { constant.buckets(group) } -> std::same_as<const partitioner::Buckets&>;
    };

// A layer of floats that a Network (network.hpp) trains. Beside the passes and weights of a Layer
// it does the work between the passes: bias and ReLU on results (host::ForwardOptions), the
// derivative of ReLU on gradients (host::GradAOptions), and changes of all values, part by part.
// host::HostLayer does it while parts are in a near cache; MachineLayer (machine_layer.hpp) adds
// plain loops to a layer of a modelled machine. Both have the bits of such loops.
template <class L>
concept TrainableLayer =
    requires(L layer, const L& constant, const sparse::Csr<float>& matrix,
             std::span<const float> values, std::span<float> gradients,
             const host::ChangePart& change, MatrixView<const float> in, MatrixView<float> out,
             const host::ForwardOptions& activation, const host::GradAOptions<float>& derivative) {
      { layer.set_weights(matrix) } -> std::same_as<std::optional<partitioner::Misfit>>;
      { layer.set_values(values) } -> std::same_as<void>;
      { layer.change_values(change) } -> std::same_as<void>;
      layer.template forward<float>(in, out, activation);
      layer.template grad_a<float>(in, out, derivative);
      layer.template grad_w<float>(in, in, gradients);
      { constant.weights(0) } -> std::same_as<const sparse::Csr<float>&>;
    };

}  // namespace tessera::train
