#include "tessera/train/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/codelets/activation.hpp"
#include "tessera/codelets/row_ends.hpp"
#include "tessera/runtime/loss_check.hpp"
#include "tessera/train/internal/checks.hpp"
#include "tessera/train/internal/half_operands.hpp"
#include "tessera/train/internal/row_loops.hpp"
#include "tessera/train/rewire/neurons.hpp"

namespace tessera::train {

using internal::copy_rounded;
using internal::for_each_row;
using internal::timed;
using planner::NetworkWork;

template <class T>
Network<T>::Network(const NetworkOptions& options, std::span<const sparse::Csr<float>> weights,
                    MakeLayer make_layer, Executor& executor, BatchShare* share)
    : options_(options),
      spec_(spec_of(options)),
      problems_(problems_of(spec_)),
      make_layer_(std::move(make_layer)),
      executor_(&executor),
      share_(share) {
  internal::check_network(spec_, weights);
  columns_ = share == nullptr ? spec_.batch : share->columns().size();
  const std::int64_t stride = internal::stride_of_rows<T>(columns_);
  inputs_.emplace_back(spec_.layers.front().inputs, stride);
  for (MadeLayer& made : layers_with(weights)) {
    const std::int64_t outputs = spec_.layers[states_.size()].outputs;
    const std::vector<float> bias(static_cast<std::size_t>(outputs));
    const std::int64_t rows_of_sums = keeps_sums(layers()) ? outputs : 0;
    states_.push_back({std::move(made), {}, bias, bias, Matrix<T>(rows_of_sums, stride)});
    states_.back().gradients.resize(states_.back().layer().weights().values.size());
    const bool is_last = states_.size() == spec_.layers.size();  // the loss reads it without gaps
    inputs_.emplace_back(outputs, is_last ? columns_ : stride);
    gradients_.emplace_back(outputs, is_last ? columns_ : stride);
  }
}

template <class T>
std::int64_t Network<T>::dead_neurons() const {
  std::int64_t dead = 0;
  for (std::int64_t i = 0; i + 1 < layers(); ++i)
    dead += train::dead_neurons(weights(i), weights(i + 1), spec_.layers[std::size_t(i)].outputs);
  return dead;
}

template <class T>
double Network<T>::density() const {
  double stored = 0, all = 0;
  for (std::int64_t i = 0; i < layers(); ++i) {
    stored += double(weights(i).blocks() * weights(i).block.area());
    all += double(weights(i).rows) * double(weights(i).cols);
  }
  return stored / all;
}

template <class T>
void Network<T>::run_pass(std::int64_t i, Pass pass, const layer::Operands& operands,
                          const layer::PassOptions& options) {
  LayerState& now = state(i);
  const layer::Outcome outcome = spec_.data_type == data_type_of<T>()
                                     ? now.layer().run(pass, operands, options)
                                     : internal::run_in_half(now.layer(), pass, operands);
  now.seconds[std::size_t(pass)] = outcome.seconds;
}

template <class T>
void Network<T>::forward(const WorkTimer& timer) {
  const DefaultFloatMode mode;
  for (std::int64_t i = 0; i < layers(); ++i) {
    LayerState& now = state(i);
    const codelets::ActivationRule& rule = activation(i);
    const bool is_fused = internal::is_in_pass<T>(rule, now.layer()) && !keeps_sums(i);
    const MatrixView<T> sums = keeps_sums(i) ? columns_of(now.sums) : input(i + 1);
    const std::span<const float> bias = has_bias(i) ? now.bias : std::span<const float>();
    timed(timer, NetworkWork::Fwd, i, [&] {
      layer::PassOptions after;
      if (is_fused) {
        after.bias = bias;
        after.activation = rule.kind;
      }
      run_pass(i, Pass::Fwd, {.in = MatrixView<const T>(input(i)), .out = sums}, after);
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

template <class T>
void Network<T>::differentiate(std::int64_t i, const WorkTimer& timer) {
  const MatrixView<const T> kept = keeps_sums(i) ? columns_of(state(i).sums) : input(i + 1);
  const MatrixView<T> gradient = output_gradient(i);
  timed(timer, NetworkWork::Derivative, i, [&] {
    for_each_row(gradient.rows, gradient.cols, *executor_, [&](std::int64_t row) {
      codelets::multiply_by_derivative<T>(gradient.cols, activation(i), kept.row(row),
                                          gradient.row(row));
    });
  });
}

template <class T>
void Network<T>::sum_biases(std::int64_t i) {
  const MatrixView<const T> gradient = output_gradient(i);
  std::vector<float>& sums = state(i).bias_gradients;
  const auto sum_columns = [&](Range columns, float* to) {
    for_each_row(gradient.rows, columns.size(), *executor_, [&](std::int64_t row) {
      const T* const own = gradient.row(row) + columns.begin;
      if constexpr (std::is_same_v<T, float>)
        to[row] = codelets::sum_in_lanes(own, columns.size());
      else
        codelets::sum_rows<T>({0, columns.size(), columns.size()}, own, &to[row]);
    });
  };
  if (share_ == nullptr) return sum_columns({0, gradient.cols}, sums.data());
  std::vector<float> by_leaf;
  const std::int64_t first = share_->columns().begin;
  for (const Range leaf : share_->leaves()) {
    by_leaf.resize(by_leaf.size() + sums.size());
    sum_columns({leaf.begin - first, leaf.end - first},
                by_leaf.data() + by_leaf.size() - sums.size());
  }
  share_->add_up(by_leaf, sums);
}

template <class T>
void Network<T>::backward(const WorkTimer& timer) {
  const DefaultFloatMode mode;
  using codelets::Activation;
  if (activation(layers() - 1).kind != Activation::None) differentiate(layers() - 1, timer);
  for (std::int64_t i = layers(); i-- > 0;) {
    LayerState& now = state(i);
    const MatrixView<const T> gradient = output_gradient(i);
    timed(timer, NetworkWork::GradW, i, [&] {
      run_pass(i, Pass::GradW,
               {.in = gradient, .in_s = MatrixView<const T>(input(i)), .gradients = now.gradients});
      if (has_bias(i)) sum_biases(i);
    });
    if (i == 0) break;
    const codelets::ActivationRule& before = activation(i - 1);
    const bool is_fused =
        before.kind == Activation::Relu && internal::is_in_pass<T>(before, now.layer());
    layer::PassOptions after;
    if (is_fused) after.where_positive = MatrixView<const T>(input(i));
    timed(timer, NetworkWork::GradA, i, [&] {
      run_pass(i, Pass::GradA, {.in = gradient, .out = output_gradient(i - 1)}, after);
    });
    if (!is_fused && before.kind != Activation::None) differentiate(i - 1, timer);
  }
}

template <class T>
NetworkState Network<T>::first_state(const Optimiser& optimiser) const {
  NetworkState state;
  for (const LayerState& layer : states_) {
    state.weights.push_back(make_value_state<float>(optimiser, std::ssize(layer.gradients)));
    state.biases.push_back(make_value_state<float>(optimiser, std::ssize(layer.bias)));
  }
  return state;
}

template <class T>
bool Network<T>::fits(const Optimiser& optimiser, const NetworkState& state) const {
  const auto has = [&](const ValueState<float>& of, std::size_t length) {
    return std::ssize(of.arrays) == states_of(optimiser) &&
           std::ranges::all_of(of.arrays,
                               [&](const auto& array) { return array.size() == length; });
  };
  bool all = state.weights.size() == states_.size() && state.biases.size() == states_.size();
  for (std::size_t i = 0; all && i < states_.size(); ++i)
    all = has(state.weights[i], states_[i].gradients.size()) &&
          has(state.biases[i], states_[i].bias.size());
  return all;
}

template <class T>
void Network<T>::update(const Optimiser& optimiser, NetworkState& state, const WorkTimer& timer) {
  internal::check_state(fits(optimiser, state));
  const Optimiser of_bias = codelets::without_decay(optimiser);
  for (std::int64_t i = 0; i < layers(); ++i) {
    const auto at = std::size_t(i);
    timed(timer, NetworkWork::Update, i, [&] {
      states_[at].layer().change_values(
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

template <class T>
float Network<T>::take_loss(const runtime::NetworkBatch& batch) {
  Matrix<T>& gradient = gradients_.back();
  gradient = inputs_.back();
  const codelets::LossPart all{gradient.rows(), gradient.cols(), spec_.batch};
  T* const values = gradient.elements().data();
  if (*spec_.loss == codelets::Loss::SoftmaxCrossEntropy)
    return codelets::softmax_cross_entropy<T>(all, batch.labels.data(), values);
  Matrix<T> targets(all.rows, all.columns);
  copy_rounded(batch.targets, targets.view());
  return codelets::mean_squared_error<T>(all, targets.elements().data(), values);
}

template <class T>
float Network<T>::run(const runtime::NetworkBatch& batch, NetworkState& state,
                      const WorkTimer& timer) {
  check_batch(spec_, batch);
  if (spec_.loss) internal::check_state(fits(spec_.optimiser, state));
  copy_rounded(batch.inputs, input(0));
  forward(timer);
  if (!spec_.loss) return 0;
  float loss = 0;
  timed(timer, NetworkWork::Loss, layers() - 1, [&] { loss = take_loss(batch); });
  check_loss("network: the loss", state.weights.front().steps + 1, loss);
  backward(timer);
  update(spec_.optimiser, state, timer);
  return loss;
}

template <class T>
void Network<T>::check_loss(std::string_view what, std::int64_t step, double loss) const {
  if (std::isfinite(loss)) return;
  std::vector<double> largest;
  for (const Matrix<T>& of_layer : std::span(inputs_).subspan(1))
    largest.push_back(runtime::largest_magnitude<T>(of_layer.view()));  // zeros fill up its rows
  runtime::refuse_loss(fmt::format("{} of step {}", what, step), loss, largest);
}

template <class T>
std::vector<MadeLayer> Network<T>::layers_with(std::span<const sparse::Csr<float>> weights) const {
  std::vector<MadeLayer> layers;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    MadeLayer& made = layers.emplace_back(make_layer_(problems_[i]));
    internal::check_data_type(spec_.data_type, data_type_of<T>(), made.machine != nullptr);
    if (made.layer->set_weights(weights[i]))
      throw Error(ErrorCode::NoSolution,
                  fmt::format("network: the weights of layer {} do not fit it", i + 1));
  }
  return layers;
}

template <class T>
void Network<T>::replace(std::vector<MadeLayer>&& layers) {
  std::vector<std::vector<float>> gradients;
  for (const MadeLayer& made : layers) gradients.emplace_back(made.layer->weights().values.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {  // nothing below throws
    std::swap(states_[i].made, layers[i]);
    states_[i].gradients.swap(gradients[i]);
  }
}

template <class T>
layer::PreparedUpdate Network<T>::prepare(std::int64_t i, const sparse::PatternChange& change) {
  layer::PreparedUpdate update = state(i).layer().prepare_update(change);
  if (update.misfit())
    throw Error(ErrorCode::NoSolution,
                fmt::format("the changed weights of layer {} do not fit their buckets: {}", i + 1,
                            update.misfit()->message));
  if (state(i).made.machine) state(i).made.machine->keep_words();
  return update;
}

template <class T>
void Network<T>::commit(std::vector<layer::PreparedUpdate>&& updates) {
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const auto placed = updates[i].placed();
    const auto added = std::ranges::count_if(placed, &sparse::PlacedBlock::is_added);
    const sparse::Csr<float>& before = weights(std::int64_t(i));
    states_[i].gradients.reserve(
        std::size_t((before.blocks() + 2 * added - std::ssize(placed)) * before.block.area()));
  }
  for (std::size_t i = 0; i < updates.size(); ++i) {  // nothing below throws
    LayerState& now = states_[i];
    const bool changes = !updates[i].placed().empty();
    now.layer().commit(std::move(updates[i]));
    if (changes && now.made.machine) now.made.machine->count_update();
    now.gradients.assign(now.layer().weights().values.size(), 0.0f);
  }
}

template class Network<float>;
template class Network<Half>;
template class Network<BFloat16>;

}  // namespace tessera::train
