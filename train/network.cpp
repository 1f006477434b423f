#include "tessera/train/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/base/random.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/train/internal/neurons.hpp"
#include "tessera/train/machine_layer.hpp"

namespace tessera::train {
namespace {

// Returns a number of the standard normal distribution, by Box and Muller.
double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
  return radius * std::cos(2 * std::numbers::pi * random.unit());
}

void draw_values(sparse::Csr<float>& m, const Dims& size, double density, Random& random) {
  const double deviation = std::sqrt(2 / (double(size.y) * density));
  std::size_t next = 0;
  for (std::int64_t row = 0; row < m.block_rows(); ++row)
    for (std::int64_t i = m.row_begin[std::size_t(row)]; i < m.row_begin[std::size_t(row) + 1]; ++i)
      for (std::int64_t r = 0; r < m.block.rows; ++r)
        for (std::int64_t c = 0; c < m.block.cols; ++c) {
          const bool is_inside =
              row * m.block.rows + r < size.x && m.col[std::size_t(i)] * m.block.cols + c < size.y;
          const double value = deviation * normal(random);
          m.values[next++] = is_inside ? float(value) : 0;
        }
}

template <class L>
void check_data_type(DataType type) {
  const bool is_machine = std::is_same_v<L, MachineLayer>;
  if (type == DataType::Float || (is_machine && type == DataType::Half)) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("network: the data type is {}; it must be float{}", to_string(type),
                          is_machine ? " or half" : " on this computer"));
}

std::vector<std::int64_t> blocks_of(const NetworkOptions& options) {
  if (options.sizes.size() < 2)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("network: {} sizes; there must be at least two, the inputs and the "
                            "width of a layer",
                            options.sizes.size()));
  std::vector<LayerSize> layers;
  for (std::size_t i = 1; i < options.sizes.size(); ++i)
    layers.push_back({options.sizes[i], options.sizes[i - 1], options.block});
  return blocks_per_layer(layers, options.density, options.distribution);
}

}  // namespace

std::vector<Problem> problems_of(const NetworkOptions& options) {
  const std::vector<std::int64_t> blocks = blocks_of(options);
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const LayerSize layer{options.sizes[i + 1], options.sizes[i], options.block};
    const bool is_dense = blocks[i] == layer.blocks();
    problems.push_back({.size = {1, layer.rows, layer.cols, options.batch},
                        .block = is_dense ? BlockShape{} : options.block,
                        .density = double(blocks[i]) / double(layer.blocks()),
                        .data_type = options.data_type,
                        .grad_a = i > 0,
                        .grad_w = true});
    check_problem(problems.back());
  }
  return problems;
}

std::vector<sparse::Csr<float>> first_weights(const NetworkOptions& options) {
  Random random(options.seed);
  std::vector<sparse::Csr<float>> weights;
  for (const Problem& p : problems_of(options)) {
    const Dims whole = p.size_in_blocks();
    weights.push_back(sparse::random_pattern(whole.x, whole.y, p.block, p.density, random.bits()));
    draw_values(weights.back(), p.size, p.density, random);
  }
  return weights;
}

MakeLayer<host::HostLayer> host_layers(Executor& executor) {
  return [&executor, cpu = host::read_host_cpu()](const Problem& problem) {
    const auto dense = problem.density == 1 ? host::DenseChoice::Always : host::DenseChoice::Never;
    return host::HostLayer(problem, cpu, executor, {.dense = dense});
  };
}

template <TrainableLayer L>
Network<L>::Network(const NetworkOptions& options, MakeLayer<L> make_layer, Executor& executor)
    : options_(options),
      problems_(problems_of(options)),
      make_layer_(std::move(make_layer)),
      executor_(&executor) {
  check_data_type<L>(options.data_type);
  std::vector<L> layers = layers_with(first_weights(options));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto outputs = std::size_t(problems_[i].size.x);
    states_.push_back(
        {std::move(layers[i]), {}, std::vector<float>(outputs), std::vector<float>(outputs)});
    states_.back().gradients.resize(states_.back().layer.weights(0).values.size());
  }
  for (const std::int64_t size : options.sizes) inputs_.emplace_back(size, options.batch);
  for (std::size_t i = 1; i < options.sizes.size(); ++i)
    gradients_.emplace_back(options.sizes[i], options.batch);
}

template <TrainableLayer L>
void Network<L>::forward(ActivitySeconds& seconds) {
  const DefaultFloatMode mode;
  seconds.measure(Activity::Forward, [&] {
    for (std::int64_t i = 0; i < layers(); ++i) {
      const bool is_last = i + 1 == layers();
      state(i).layer.template forward<float>(
          input(i), input(i + 1),
          {.bias = state(i).bias,
           .activation = is_last ? host::Activation::None : host::Activation::Relu});
    }
  });
}

template <TrainableLayer L>
void Network<L>::backward(ActivitySeconds& seconds) {
  const DefaultFloatMode mode;
  for (std::int64_t i = layers(); i-- > 0;) {
    LayerState& now = state(i);
    const MatrixView<const float> gradient = output_gradient(i);
    seconds.measure(Activity::GradW, [&] {
      now.layer.template grad_w<float>(gradient, input(i), now.gradients);
      internal::sum_rows(gradient, now.bias_gradients, *executor_);
    });
    if (i == 0) break;
    seconds.measure(Activity::GradA, [&] {
      now.layer.template grad_a<float>(gradient, output_gradient(i - 1),
                                       {.where_positive = input(i)});
    });
  }
}

template <TrainableLayer L>
L Network<L>::layer_with(std::int64_t i, const sparse::Csr<float>& weights) const {
  L made = make_layer_(problems_[std::size_t(i)]);
  if (made.set_weights(weights))
    throw Error(ErrorCode::NoSolution,
                fmt::format("network: the weights of layer {} do not fit it", i + 1));
  return made;
}

template <TrainableLayer L>
std::vector<L> Network<L>::layers_with(std::span<const sparse::Csr<float>> weights) const {
  std::vector<L> made;
  made.reserve(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i)
    made.push_back(layer_with(std::int64_t(i), weights[i]));
  return made;
}

template <TrainableLayer L>
void Network<L>::replace(std::vector<L>&& layers) {
  std::vector<std::vector<float>> gradients;
  for (const L& layer : layers) gradients.emplace_back(layer.weights(0).values.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {  // nothing below throws
    std::swap(states_[i].layer, layers[i]);
    states_[i].gradients.swap(gradients[i]);
  }
}

template <TrainableLayer L>
LayerUpdate<L> Network<L>::prepare(std::int64_t i, const sparse::PatternChange& change) {
  if constexpr (std::is_same_v<LayerUpdate<L>, NewLayer<L>>) {
    if (change.removed.empty() && change.added.empty()) return {};
    std::vector<sparse::PlacedBlock> placed = sparse::place_change(weights(i), change);
    LayerUpdate<L> made{layer_with(i, sparse::apply_change<float>(weights(i), placed)),
                        std::move(placed)};
    made.layer->count_update_of(state(i).layer);
    return made;
  } else {
    return state(i).layer.prepare_update(change);
  }
}

template <TrainableLayer L>
void Network<L>::commit(std::vector<LayerUpdate<L>>&& updates,
                        std::span<const std::int64_t> values) {
  for (std::size_t i = 0; i < updates.size(); ++i)
    states_[i].gradients.reserve(std::size_t(values[i]));
  for (std::size_t i = 0; i < updates.size(); ++i) {  // nothing below throws
    LayerState& state = states_[i];
    if constexpr (std::is_same_v<LayerUpdate<L>, NewLayer<L>>) {
      if (updates[i].layer) std::swap(state.layer, *updates[i].layer);
    } else {
      state.layer.commit(std::move(updates[i]));
    }
    state.gradients.assign(std::size_t(values[i]), 0.0f);
  }
}

template class Network<host::HostLayer>;
template class Network<MachineLayer>;

}  // namespace tessera::train
