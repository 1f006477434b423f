#include "tessera/train/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/activation.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/runtime/loss_check.hpp"
#include "tessera/train/machine_layer.hpp"
#include "tessera/train/rewire/neurons.hpp"

namespace tessera::train {

using planner::NetworkWork;

namespace {

template <class L, class T>
void check_data_type(DataType type) {
  const bool is_machine = std::is_same_v<L, MachineLayer>;
  if (type == data_type_of<T>() || (is_machine && type == DataType::Half)) return;
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("network: the data type is {}; it must be {}{}", to_string(type),
                  to_string(data_type_of<T>()), is_machine ? " or half" : " on this computer"));
}

void check_layers(const planner::NetworkSpec& spec) {
  for (std::size_t l = 0; l < spec.layers.size(); ++l)
    if (spec.layers[l].recompute || spec.layers[l].operands != Placement::AsLeft)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("network: layer {} {}, which resident networks of modelled machines "
                              "do; leave it out here",
                              l + 1,
                              spec.layers[l].recompute ? "recomputes its results"
                                                       : "has homes of its own for operands"));
}

void check_weights(const planner::NetworkSpec& spec, std::span<const sparse::Csr<float>> weights) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorCode::InvalidArgument, "network: " + what);
  };
  if (weights.size() != spec.layers.size())
    refuse(fmt::format("it has {} layers; weights of {} were given", spec.layers.size(),
                       weights.size()));
  for (std::size_t l = 0; l < weights.size(); ++l) {
    const std::int64_t all = spec.layers[l].outputs * spec.layers[l].inputs;
    if (spec.layers[l].dense && std::ssize(weights[l].values) != all)
      refuse(fmt::format("layer {} is dense and has {} weights; {} were given", l + 1, all,
                         weights[l].values.size()));
  }
}

// Returns whether the passes of a layer add the bias and apply the activation. Those of modelled
// machines do not; in 16 bits the codelets' loops after a pass are faster, and a cap is theirs.
template <class L, class T>
bool is_in_pass(const codelets::ActivationRule& rule) {
  const bool has_cap =
      rule.kind == codelets::Activation::Relu && rule.cap != std::numeric_limits<float>::infinity();
  return std::is_same_v<L, host::HostLayer> && std::is_same_v<T, float> && !has_cap;
}

// Writes the sum of each row. A row of floats is added up in 16 sums side by side, which vectors
// hold.
template <class T>
void sum_row(const T* row, std::int64_t cols, float& sum) {
  if constexpr (std::is_same_v<T, float>) {
    constexpr std::int64_t kLanes = 16;
    std::array<float, kLanes> lanes{};
    std::int64_t c = 0;
    for (; c + kLanes <= cols; c += kLanes)
      for (std::int64_t i = 0; i < kLanes; ++i) lanes[std::size_t(i)] += row[c + i];
    for (; c < cols; ++c) lanes[std::size_t(c % kLanes)] += row[c];
    sum = std::accumulate(lanes.begin(), lanes.end(), 0.0f);
  } else {
    codelets::sum_rows<T>({0, cols, cols}, row, &sum);
  }
}

// Calls body(row) for all rows; threads get enough work to be woken for.
template <class Body>
void for_each_row(std::int64_t rows, std::int64_t cols, Executor& executor, Body&& body) {
  constexpr std::int64_t kNumbersAtOnce = 1 << 14;
  const std::int64_t piece =
      std::max<std::int64_t>(1, kNumbersAtOnce / std::max(cols, std::int64_t(1)));
  executor.for_each(ceil_div(rows, piece), [&](std::int64_t i) {
    const std::int64_t end = std::min(rows, (i + 1) * piece);
    for (std::int64_t row = i * piece; row < end; ++row) body(row);
  });
}

template <class T>
void copy_rounded(MatrixView<const float> from, Matrix<T>& to) {
  for (std::int64_t row = 0; row < from.rows; ++row)
    for (std::int64_t col = 0; col < from.cols; ++col) to(row, col) = T(from(row, col));
}

template <class Work>
void timed(const WorkTimer& timer, NetworkWork work, std::int64_t layer, Work&& body) {
  if (!timer) return body();
  const auto start = std::chrono::steady_clock::now();
  body();
  timer(work, layer,
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace

MakeLayer<host::HostLayer> host_layers(Executor& executor, bool density_changes) {
  return [&executor, density_changes, cpu = host::read_host_cpu()](const Problem& problem) {
    const auto dense = density_changes        ? host::DenseChoice::Auto
                       : problem.density == 1 ? host::DenseChoice::Always
                                              : host::DenseChoice::Never;
    return host::HostLayer(problem, cpu, executor, {.dense = dense});
  };
}

template <class L, class T>
  requires TrainableLayer<L, T>
Network<L, T>::Network(const NetworkOptions& options, MakeLayer<L> make_layer, Executor& executor)
    : Network(options, first_weights(options), std::move(make_layer), executor) {}

template <class L, class T>
  requires TrainableLayer<L, T>
Network<L, T>::Network(const NetworkOptions& options, std::span<const sparse::Csr<float>> weights,
                       MakeLayer<L> make_layer, Executor& executor)
    : options_(options),
      spec_(spec_of(options)),
      problems_(problems_of(spec_)),
      make_layer_(std::move(make_layer)),
      executor_(&executor) {
  check_data_type<L, T>(spec_.data_type);
  check_layers(spec_);
  check_weights(spec_, weights);
  inputs_.emplace_back(spec_.layers.front().inputs, spec_.batch);
  for (L& layer : layers_with(weights)) {
    const std::int64_t outputs = spec_.layers[states_.size()].outputs;
    const std::vector<float> bias(static_cast<std::size_t>(outputs));
    const std::int64_t rows_of_sums = keeps_sums(layers()) ? outputs : 0;
    states_.push_back({std::move(layer), {}, bias, bias, Matrix<T>(rows_of_sums, spec_.batch)});
    states_.back().gradients.resize(states_.back().layer.weights(0).values.size());
    inputs_.emplace_back(outputs, spec_.batch);
    gradients_.emplace_back(outputs, spec_.batch);
  }
}

template <class L, class T>
  requires TrainableLayer<L, T>
std::int64_t Network<L, T>::dead_neurons() const {
  std::int64_t dead = 0;
  for (std::int64_t i = 0; i + 1 < layers(); ++i)
    dead += train::dead_neurons(weights(i), weights(i + 1), spec_.layers[std::size_t(i)].outputs);
  return dead;
}

template <class L, class T>
  requires TrainableLayer<L, T>
double Network<L, T>::density() const {
  double stored = 0, all = 0;
  for (std::int64_t i = 0; i < layers(); ++i) {
    stored += double(weights(i).blocks() * weights(i).block.area());
    all += double(weights(i).rows) * double(weights(i).cols);
  }
  return stored / all;
}

template <class L, class T>
  requires TrainableLayer<L, T>
void Network<L, T>::forward(const WorkTimer& timer) {
  const DefaultFloatMode mode;
  for (std::int64_t i = 0; i < layers(); ++i) {
    LayerState& now = state(i);
    const codelets::ActivationRule& rule = activation(i);
    const bool is_fused = is_in_pass<L, T>(rule) && !keeps_sums(i);
    const MatrixView<T> sums = keeps_sums(i) ? now.sums.view() : input(i + 1);
    const std::span<const float> bias = has_bias(i) ? now.bias : std::span<const float>();
    timed(timer, NetworkWork::Fwd, i, [&] {
      layer::PassOptions after;
      if (is_fused) {
        after.bias = bias;
        after.activation = rule.kind;
      }
      now.layer.template forward<T>(input(i), sums, after);
    });
    if (is_fused || (bias.empty() && rule.kind == codelets::Activation::None)) continue;
    timed(timer, NetworkWork::Activate, i, [&] {
      for_each_row(sums.rows, sums.cols, *executor_, [&](std::int64_t row) {
        codelets::add_bias_and_activate<T>({0, sums.cols, sums.cols},
                                           bias.empty() ? nullptr : &bias[std::size_t(row)], rule,
                                           sums.row(row), input(i + 1).row(row));
      });
    });
  }
}

template <class L, class T>
  requires TrainableLayer<L, T>
void Network<L, T>::differentiate(std::int64_t i, const WorkTimer& timer) {
  const MatrixView<const T> kept = keeps_sums(i) ? state(i).sums.view() : input(i + 1);
  const MatrixView<T> gradient = output_gradient(i);
  timed(timer, NetworkWork::Derivative, i, [&] {
    for_each_row(gradient.rows, gradient.cols, *executor_, [&](std::int64_t row) {
      codelets::multiply_by_derivative<T>(gradient.cols, activation(i), kept.row(row),
                                          gradient.row(row));
    });
  });
}

template <class L, class T>
  requires TrainableLayer<L, T>
void Network<L, T>::backward(const WorkTimer& timer) {
  const DefaultFloatMode mode;
  using codelets::Activation;
  if (activation(layers() - 1).kind != Activation::None) differentiate(layers() - 1, timer);
  for (std::int64_t i = layers(); i-- > 0;) {
    LayerState& now = state(i);
    const MatrixView<const T> gradient = output_gradient(i);
    timed(timer, NetworkWork::GradW, i, [&] {
      now.layer.template grad_w<T>(gradient, input(i), now.gradients);
      if (!has_bias(i)) return;
      for_each_row(gradient.rows, gradient.cols, *executor_, [&](std::int64_t row) {
        sum_row(gradient.row(row), gradient.cols, now.bias_gradients[std::size_t(row)]);
      });
    });
    if (i == 0) break;
    const codelets::ActivationRule& before = activation(i - 1);
    const bool is_fused = before.kind == Activation::Relu && is_in_pass<L, T>(before);
    layer::PassOptions after;
    if (is_fused) after.where_positive = MatrixView<const T>(input(i));
    timed(timer, NetworkWork::GradA, i,
          [&] { now.layer.template grad_a<T>(gradient, output_gradient(i - 1), after); });
    if (!is_fused && before.kind != Activation::None) differentiate(i - 1, timer);
  }
}

template <class L, class T>
  requires TrainableLayer<L, T>
NetworkState Network<L, T>::first_state(const Optimiser& optimiser) const {
  NetworkState state;
  for (const LayerState& layer : states_) {
    state.weights.push_back(make_value_state<float>(optimiser, std::ssize(layer.gradients)));
    state.biases.push_back(make_value_state<float>(optimiser, std::ssize(layer.bias)));
  }
  return state;
}

namespace {

// A step that is refused changes nothing, so all lists are compared before the first of them.
template <class States>
void check_lengths(const NetworkState& state, const States& layers) {
  const auto has = [](const ValueState<float>& of, std::size_t length) {
    return std::ranges::all_of(of.arrays,
                               [&](const auto& array) { return array.size() == length; });
  };
  bool fits = state.weights.size() == layers.size() && state.biases.size() == layers.size();
  for (std::size_t i = 0; fits && i < layers.size(); ++i)
    fits = has(state.weights[i], layers[i].gradients.size()) &&
           has(state.biases[i], layers[i].bias.size());
  if (!fits)
    throw Error(
        ErrorCode::InvalidArgument,
        "the state of the optimiser belongs to another network; begin with first_state() of "
        "this one");
}

}  // namespace

template <class L, class T>
  requires TrainableLayer<L, T>
void Network<L, T>::update(const Optimiser& optimiser, NetworkState& state,
                           const WorkTimer& timer) {
  check_lengths(state, states_);
  const Optimiser of_bias = codelets::without_decay(optimiser);
  for (std::int64_t i = 0; i < layers(); ++i) {
    const auto at = std::size_t(i);
    timed(timer, NetworkWork::Update, i, [&] {
      states_[at].layer.change_values(
          ValueStep<float, T>(optimiser, states_[at].gradients, state.weights[at]));
    });
  }
  timed(timer, NetworkWork::UpdateBiases, 0, [&] {
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (has_bias(std::int64_t(i)))
        step<float>(of_bias, states_[i].bias, states_[i].bias_gradients, state.biases[i],
                    *executor_);
  });
}

template <class L, class T>
  requires TrainableLayer<L, T>
float Network<L, T>::take_loss(const runtime::NetworkBatch& batch) {
  Matrix<T>& gradient = gradients_.back();
  gradient = inputs_.back();
  const codelets::LossPart all{gradient.rows(), gradient.cols(), spec_.batch};
  T* const values = gradient.elements().data();
  if (*spec_.loss == codelets::Loss::SoftmaxCrossEntropy)
    return codelets::softmax_cross_entropy<T>(all, batch.labels.data(), values);
  Matrix<T> targets(all.rows, all.columns);
  copy_rounded(batch.targets, targets);
  return codelets::mean_squared_error<T>(all, targets.elements().data(), values);
}

template <class L, class T>
  requires TrainableLayer<L, T>
float Network<L, T>::run(const runtime::NetworkBatch& batch, NetworkState& state,
                         const WorkTimer& timer) {
  check_batch(spec_, batch);
  if (spec_.loss) check_lengths(state, states_);
  copy_rounded(batch.inputs, inputs_.front());
  forward(timer);
  if (!spec_.loss) return 0;
  float loss = 0;
  timed(timer, NetworkWork::Loss, layers() - 1, [&] { loss = take_loss(batch); });
  check_loss("network: the loss", state.weights.front().steps + 1, loss);
  backward(timer);
  update(spec_.optimiser, state, timer);
  return loss;
}

template <class L, class T>
  requires TrainableLayer<L, T>
void Network<L, T>::check_loss(std::string_view what, std::int64_t step, double loss) const {
  if (std::isfinite(loss)) return;
  std::vector<double> largest;
  for (std::size_t i = 1; i < inputs_.size(); ++i)
    largest.push_back(runtime::largest_magnitude<T>(inputs_[i].view()));
  runtime::refuse_loss(fmt::format("{} of step {}", what, step), loss, largest);
}

template <class L, class T>
  requires TrainableLayer<L, T>
L Network<L, T>::layer_with(std::int64_t i, const sparse::Csr<float>& weights) const {
  L made = make_layer_(problems_[std::size_t(i)]);
  if (made.set_weights(weights))
    throw Error(ErrorCode::NoSolution,
                fmt::format("network: the weights of layer {} do not fit it", i + 1));
  return made;
}

template <class L, class T>
  requires TrainableLayer<L, T>
std::vector<L> Network<L, T>::layers_with(std::span<const sparse::Csr<float>> weights) const {
  std::vector<L> made;
  made.reserve(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i)
    made.push_back(layer_with(std::int64_t(i), weights[i]));
  return made;
}

template <class L, class T>
  requires TrainableLayer<L, T>
void Network<L, T>::replace(std::vector<L>&& layers) {
  std::vector<std::vector<float>> gradients;
  for (const L& layer : layers) gradients.emplace_back(layer.weights(0).values.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {  // nothing below throws
    std::swap(states_[i].layer, layers[i]);
    states_[i].gradients.swap(gradients[i]);
  }
}

template <class L, class T>
  requires TrainableLayer<L, T>
typename L::PreparedUpdate Network<L, T>::prepare(std::int64_t i,
                                                  const sparse::PatternChange& change) {
  return state(i).layer.prepare_update(change);
}

template <class L, class T>
  requires TrainableLayer<L, T>
void Network<L, T>::commit(std::vector<typename L::PreparedUpdate>&& updates,
                           std::span<const std::int64_t> values) {
  for (std::size_t i = 0; i < updates.size(); ++i)
    states_[i].gradients.reserve(std::size_t(values[i]));
  for (std::size_t i = 0; i < updates.size(); ++i) {  // nothing below throws
    states_[i].layer.commit(std::move(updates[i]));
    states_[i].gradients.assign(std::size_t(values[i]), 0.0f);
  }
}

template class Network<host::HostLayer, float>;
template class Network<host::HostLayer, Half>;
template class Network<host::HostLayer, BFloat16>;
template class Network<MachineLayer, float>;

}  // namespace tessera::train
