#include "tessera/train/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/random.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/train/internal/neurons.hpp"
#include "tessera/train/machine_layer.hpp"
#include "tessera/train/rewire/neurons.hpp"
#include "tessera/train/rewire/rows.hpp"

namespace tessera::train {
namespace {

// Returns a number of the standard normal distribution, by Box and Muller.
double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
  return radius * std::cos(2 * std::numbers::pi * random.unit());
}

// Returns the inputs that the outputs of a row of blocks have.
std::int64_t fan_in(const sparse::Csr<float>& m, std::int64_t row, const Dims& size) {
  std::int64_t inputs = 0;
  for (std::int64_t i = m.row_begin[std::size_t(row)]; i < m.row_begin[std::size_t(row) + 1]; ++i)
    inputs += std::min(m.block.cols, size.y - m.col[std::size_t(i)] * m.block.cols);
  return std::max<std::int64_t>(inputs, 1);
}

void draw_values(sparse::Csr<float>& m, const Dims& size, Random& random) {
  std::size_t next = 0;
  for (std::int64_t row = 0; row < m.block_rows(); ++row) {
    const double deviation = std::sqrt(2 / double(fan_in(m, row, size)));
    for (std::int64_t i = m.row_begin[std::size_t(row)]; i < m.row_begin[std::size_t(row) + 1]; ++i)
      for (std::int64_t r = 0; r < m.block.rows; ++r)
        for (std::int64_t c = 0; c < m.block.cols; ++c) {
          const bool is_inside =
              row * m.block.rows + r < size.x && m.col[std::size_t(i)] * m.block.cols + c < size.y;
          const double value = deviation * normal(random);
          m.values[next++] = is_inside ? float(value) : 0;
        }
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

void check_least(const LayerSize& layer, std::int64_t blocks, std::int64_t least) {
  const std::int64_t needed = blocks_for_least(ceil_div(layer.rows, layer.block.rows),
                                               ceil_div(layer.cols, layer.block.cols), least);
  if (least >= 0 && blocks >= needed) return;
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("network: {} blocks for each neuron of a layer of {} x {} need {} blocks, "
                  "and the density stores {}; ask for 0 or more and for fewer, or for a "
                  "density of {:.3g} or more in this layer",
                  least, layer.rows, layer.cols, needed, blocks,
                  double(needed) / double(layer.blocks())));
}

}  // namespace

std::vector<std::int64_t> blocks_at(const NetworkOptions& options, double density) {
  if (options.sizes.size() < 2)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("network: {} sizes; there must be at least two, the inputs and the "
                            "width of a layer",
                            options.sizes.size()));
  if (options.constant_fan_in && options.min_per_neuron != 0)
    throw Error(ErrorCode::InvalidArgument,
                "network: choose constant_fan_in or min_per_neuron, not both");
  std::vector<LayerSize> layers;
  for (std::size_t i = 1; i < options.sizes.size(); ++i)
    layers.push_back({options.sizes[i], options.sizes[i - 1], options.block});
  const std::vector<std::int64_t> blocks = blocks_per_layer(layers, density, options.distribution);
  for (std::size_t i = 0; i < layers.size(); ++i)
    check_least(layers[i], blocks[i], options.min_per_neuron);
  return blocks;
}

std::vector<Problem> problems_of(const NetworkOptions& options) {
  const std::vector<std::int64_t> blocks = blocks_at(options, options.density);
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const LayerSize layer{options.sizes[i + 1], options.sizes[i], options.block};
    // The last layer of a uniform network stays dense.
    const bool stays_dense =
        !options.density_changes || (options.distribution == Distribution::Uniform &&
                                     blocks.size() > 1 && i + 1 == blocks.size());
    const bool is_dense = blocks[i] == layer.blocks() && stays_dense;
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
    const std::uint64_t seed = random.bits();
    weights.push_back(sparse::random_pattern(whole.x, whole.y, p.block, p.density, seed));
    if (options.constant_fan_in)
      weights.back() = random_even_rows(whole.x, whole.y, p.block, weights.back().blocks(), seed);
    if (options.min_per_neuron > 0)
      weights.back() = with_least_per_neuron(weights.back(), options.min_per_neuron, seed);
    draw_values(weights.back(), p.size, random);
  }
  return weights;
}

MakeLayer<host::HostLayer> host_layers(Executor& executor, bool density_changes) {
  return [&executor, density_changes, cpu = host::read_host_cpu()](const Problem& problem) {
    const auto dense = density_changes        ? host::DenseChoice::Auto
                       : problem.density == 1 ? host::DenseChoice::Always
                                              : host::DenseChoice::Never;
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
std::int64_t Network<L>::dead_neurons() const {
  std::int64_t dead = 0;
  for (std::int64_t i = 0; i + 1 < layers(); ++i)
    dead += train::dead_neurons(weights(i), weights(i + 1), options_.sizes[std::size_t(i) + 1]);
  return dead;
}

template <TrainableLayer L>
double Network<L>::density() const {
  double stored = 0, all = 0;
  for (std::int64_t i = 0; i < layers(); ++i) {
    stored += double(weights(i).blocks() * weights(i).block.area());
    all += double(weights(i).rows) * double(weights(i).cols);
  }
  return stored / all;
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
