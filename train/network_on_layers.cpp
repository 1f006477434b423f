#include "tessera/train/network_on_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/loss_check.hpp"

namespace tessera::train {

using runtime::NetworkWork;

namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::InvalidArgument, "network: " + message);
}

// Pointers to the states of an optimiser from an element on.
class StatesAt {
 public:
  StatesAt(std::vector<std::vector<float>>& states, std::int64_t element) : count_(states.size()) {
    TESSERA_ASSERT(count_ <= pointers_.size());
    for (std::size_t s = 0; s < count_; ++s) pointers_[s] = states[s].data() + element;
  }
  std::span<float* const> all() const { return {pointers_.data(), count_}; }

 private:
  std::array<float*, 2> pointers_{};
  std::size_t count_;
};

}  // namespace

template <class L, class T>
  requires Layer<L, T>
NetworkOnLayers<L, T>::NetworkOnLayers(const runtime::NetworkSpec& spec,
                                       const std::function<L(const Problem&)>& make_layer,
                                       Executor& executor)
    : spec_(spec), executor_(&executor) {
  check(spec_);
  if (spec_.data_type != data_type_of<T>())
    refuse(fmt::format("it is of {}; this network computes in {}", to_string(spec_.data_type),
                       to_string(data_type_of<T>())));
  for (std::size_t l = 0; l < spec_.layers.size(); ++l)
    if (spec_.layers[l].recompute || spec_.layers[l].operands != Placement::AsLeft)
      refuse(fmt::format("layer {} {}, which modelled machines do; leave it out here", l + 1,
                         spec_.layers[l].recompute ? "recomputes its results"
                                                   : "has homes of its own for operands"));
  const std::size_t states =
      spec_.loss ? std::size_t(codelets::states_of(spec_.optimiser)) : std::size_t(0);
  for (const Problem& problem : problems_of(spec_)) {
    LayerState state{.layer = make_layer(problem)};
    state.result = Matrix<T>(problem.size.x, problem.size.z);
    if (spec_.loss) state.gradient = Matrix<T>(problem.size.x, problem.size.z);
    if (spec_.layers[layers_.size()].activation.keeps_sums()) state.sums = state.result;
    state.states.resize(states);
    state.bias.assign(std::size_t(problem.size.x), 0);
    state.bias_gradients = state.bias;
    state.bias_states.assign(states, state.bias);
    layers_.push_back(std::move(state));
  }
}

template <class L, class T>
  requires Layer<L, T>
auto NetworkOnLayers<L, T>::at(std::int64_t layer) -> LayerState& {
  if (layer < 0 || layer >= std::ssize(layers_))
    refuse(fmt::format("layer {} does not exist; legal: 0 to {}", layer, layers_.size() - 1));
  return layers_[std::size_t(layer)];
}

template <class L, class T>
  requires Layer<L, T>
auto NetworkOnLayers<L, T>::at(std::int64_t layer) const -> const LayerState& {
  return const_cast<NetworkOnLayers*>(this)->at(layer);
}

template <class L, class T>
  requires Layer<L, T>
std::optional<partitioner::Misfit> NetworkOnLayers<L, T>::set_weights(
    std::int64_t l, const sparse::Csr<float>& weights) {
  LayerState& state = at(l);
  const std::int64_t all = described(l).outputs * described(l).inputs;
  if (described(l).dense && std::ssize(weights.values) != all)
    refuse(fmt::format("layer {} is dense and has {} weights; {} were given", l + 1, all,
                       weights.values.size()));
  if (auto misfit = state.layer.set_weights(weights)) return misfit;
  state.values.clear();
  for (const float value : weights.values) state.values.push_back(T(value));
  const std::size_t trained = spec_.loss ? weights.values.size() : 0;
  state.gradients.assign(trained, 0);
  state.rounded_gradients.assign(trained, T());
  state.new_values.assign(trained, 0);
  for (std::vector<float>& one : state.states) one.assign(state.values.size(), 0);
  for (std::vector<float>& one : state.bias_states) std::fill(one.begin(), one.end(), 0.0f);
  state.steps = 0;
  state.has_weights = true;
  return std::nullopt;
}

template <class L, class T>
  requires Layer<L, T>
void NetworkOnLayers<L, T>::set_bias(std::int64_t l, std::span<const float> bias) {
  LayerState& state = at(l);
  if (!described(l).bias) refuse(fmt::format("layer {} has no bias", l + 1));
  if (bias.size() != state.bias.size())
    refuse(fmt::format("the bias of layer {} has {} values; this layer has {} outputs", l + 1,
                       bias.size(), state.bias.size()));
  state.bias.assign(bias.begin(), bias.end());
}

template <class L, class T>
  requires Layer<L, T>
sparse::Csr<float> NetworkOnLayers<L, T>::weights(std::int64_t l) const {
  if (!at(l).has_weights) refuse("call set_weights first");
  return at(l).layer.weights(0);
}

template <class L, class T>
  requires Layer<L, T>
std::span<const float> NetworkOnLayers<L, T>::bias(std::int64_t l) const {
  return at(l).bias;
}

template <class L, class T>
  requires Layer<L, T>
template <class Work>
void NetworkOnLayers<L, T>::timed(NetworkWork kind, std::int64_t layer, Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  times_.push_back({kind, layer, took.count()});
}

template <class L, class T>
  requires Layer<L, T>
MatrixView<const T> NetworkOnLayers<L, T>::input_of(std::int64_t l) const {
  return l == 0 ? inputs_.view() : layers_[std::size_t(l) - 1].result.view();
}

template <class L, class T>
  requires Layer<L, T>
void NetworkOnLayers<L, T>::forward(std::int64_t l) {
  LayerState& state = at(l);
  Matrix<T>& sums = described(l).activation.keeps_sums() ? state.sums : state.result;
  timed(NetworkWork::Fwd, l, [&] { state.layer.template forward<T>(input_of(l), sums.view()); });
  if (described(l).has_activation_step()) timed(NetworkWork::Activate, l, [&] { activate(l); });
}

// Rows do not depend on each other.
template <class L, class T>
  requires Layer<L, T>
void NetworkOnLayers<L, T>::activate(std::int64_t l) {
  LayerState& state = at(l);
  const runtime::NetworkLayer& layer = described(l);
  Matrix<T>& sums = layer.activation.keeps_sums() ? state.sums : state.result;
  const std::int64_t cols = state.result.cols();
  executor_->for_each(state.result.rows(), [&](std::int64_t row) {
    codelets::add_bias_and_activate<T>({0, cols, cols}, &state.bias[std::size_t(row)],
                                       layer.activation, sums.view().row(row),
                                       state.result.view().row(row));
  });
}

template <class L, class T>
  requires Layer<L, T>
void NetworkOnLayers<L, T>::take_loss(const runtime::NetworkBatch& batch) {
  LayerState& last = layers_.back();
  last.gradient = last.result;
  const codelets::LossPart all{last.result.rows(), last.result.cols(), spec_.batch};
  T* const values = last.gradient.elements().data();
  if (*spec_.loss == codelets::Loss::SoftmaxCrossEntropy) {
    loss_ = codelets::softmax_cross_entropy<T>(all, batch.labels.data(), values);
    return;
  }
  Matrix<T> targets(all.rows, all.columns);
  for (std::int64_t row = 0; row < all.rows; ++row)
    for (std::int64_t col = 0; col < all.columns; ++col)
      targets(row, col) = T(batch.targets(row, col));
  loss_ = codelets::mean_squared_error<T>(all, targets.elements().data(), values);
}

template <class L, class T>
  requires Layer<L, T>
void NetworkOnLayers<L, T>::check_loss() const {
  if (std::isfinite(loss_)) return;
  std::int64_t step = 0;
  std::vector<double> largest;
  for (const LayerState& state : layers_) {
    step = std::max(step, state.steps + 1);
    largest.push_back(runtime::largest_magnitude<T>(state.result.view()));
  }
  runtime::refuse_loss(fmt::format("network: the loss of step {}", step), loss_, largest);
}

template <class L, class T>
  requires Layer<L, T>
void NetworkOnLayers<L, T>::differentiate(std::int64_t l) {
  LayerState& state = at(l);
  const runtime::NetworkLayer& layer = described(l);
  const Matrix<T>& kept = layer.activation.keeps_sums() ? state.sums : state.result;
  const std::int64_t cols = state.result.cols();
  executor_->for_each(state.gradient.rows(), [&](std::int64_t row) {
    T* const gradient = state.gradient.view().row(row);
    codelets::multiply_by_derivative<T>(cols, layer.activation, kept.view().row(row), gradient);
    if (layer.bias)
      codelets::sum_rows<T>({0, cols, cols}, gradient, &state.bias_gradients[std::size_t(row)]);
  });
}

// The optimiser computes in the type of the layer, as the tiles of a modelled machine do.
template <class L, class T>
  requires Layer<L, T>
void NetworkOnLayers<L, T>::update(std::int64_t l) {
  constexpr std::int64_t kPart = 4096;  // values that a thread changes at a time
  LayerState& state = at(l);
  const std::int64_t count = std::ssize(state.values);
  executor_->for_each(ceil_div(count, kPart), [&](std::int64_t part) {
    const std::int64_t begin = part * kPart, size = std::min(kPart, count - begin);
    const StatesAt states(state.states, begin);
    for (std::int64_t i = begin; i < begin + size; ++i)
      state.rounded_gradients[std::size_t(i)] = T(state.gradients[std::size_t(i)]);
    codelets::update_values<T>(spec_.optimiser, state.steps,
                               std::span(std::as_const(state.rounded_gradients))
                                   .subspan(std::size_t(begin), std::size_t(size)),
                               states.all(), state.values.data() + begin);
    for (std::int64_t i = begin; i < begin + size; ++i)
      state.new_values[std::size_t(i)] = float(state.values[std::size_t(i)]);
  });
  state.layer.set_values(std::span<const float>(state.new_values));
}

template <class L, class T>
  requires Layer<L, T>
void NetworkOnLayers<L, T>::update_bias(std::int64_t l) {
  LayerState& state = at(l);
  const StatesAt states(state.bias_states, 0);
  codelets::update_values<float>(codelets::without_decay(spec_.optimiser), state.steps,
                                 state.bias_gradients, states.all(), state.bias.data());
}

template <class L, class T>
  requires Layer<L, T>
void NetworkOnLayers<L, T>::backward() {
  for (std::int64_t l = std::ssize(layers_) - 1; l >= 0; --l) {
    LayerState& state = at(l);
    const MatrixView<const T> gradient = std::as_const(state.gradient).view();
    if (described(l).has_activation_step())
      timed(NetworkWork::Derivative, l, [&] { differentiate(l); });
    if (l > 0)
      timed(NetworkWork::GradA, l,
            [&] { state.layer.template grad_a<T>(gradient, at(l - 1).gradient.view()); });
    timed(NetworkWork::GradW, l, [&] {
      state.layer.template grad_w<T>(gradient, input_of(l), std::span<float>(state.gradients));
    });
    ++state.steps;
    timed(NetworkWork::Update, l, [&] { update(l); });
  }
  timed(NetworkWork::UpdateBiases, 0, [&] {
    for (std::int64_t l = 0; l < std::ssize(layers_); ++l)
      if (described(l).bias) update_bias(l);
  });
}

template <class L, class T>
  requires Layer<L, T>
std::vector<WorkSeconds> NetworkOnLayers<L, T>::run(const runtime::NetworkBatch& batch) {
  check_batch(spec_, batch);
  for (std::size_t l = 0; l < layers_.size(); ++l)
    if (!layers_[l].has_weights)
      refuse(fmt::format("layer {} has no weights; call set_weights first", l + 1));
  times_.clear();
  inputs_ = Matrix<T>(batch.inputs.rows, batch.inputs.cols);
  for (std::int64_t row = 0; row < inputs_.rows(); ++row)
    for (std::int64_t col = 0; col < inputs_.cols(); ++col)
      inputs_(row, col) = T(batch.inputs(row, col));
  for (std::int64_t l = 0; l < std::ssize(layers_); ++l) forward(l);
  if (spec_.loss) {
    timed(NetworkWork::Loss, std::ssize(layers_) - 1, [&] { take_loss(batch); });
    check_loss();
    backward();
    return times_;
  }
  const Matrix<T>& result = layers_.back().result;
  outputs_ = Matrix<float>(result.rows(), result.cols());
  for (std::int64_t row = 0; row < result.rows(); ++row)
    for (std::int64_t col = 0; col < result.cols(); ++col)
      outputs_(row, col) = float(result(row, col));
  return times_;
}

#define TESSERA_NETWORK(T)                            \
  template class NetworkOnLayers<host::HostLayer, T>; \
  template class NetworkOnLayers<runtime::FullyConnected, T>;
TESSERA_NETWORK(float)
TESSERA_NETWORK(Half)
TESSERA_NETWORK(BFloat16)
#undef TESSERA_NETWORK

}  // namespace tessera::train
