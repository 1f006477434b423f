#include "tessera/train/network_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/random.hpp"
#include "tessera/sparse/random.hpp"
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

void check_least(const LayerSize& layer, std::int64_t blocks, std::int64_t least) {
  const std::int64_t needed = blocks_for_least(ceil_div(layer.rows, layer.block.rows),
                                               ceil_div(layer.cols, layer.block.cols), least);
  if (least >= 0 && blocks >= needed) return;
  throw_invalid(
      least < 0
          ? fmt::format("network: min_per_neuron is {}; it must be at least 0", least)
          : fmt::format("network: min_per_neuron {} needs {} blocks in a layer of {} x {}, and its "
                        "density stores {}; ask for fewer, or for a density of at least {:.3g}",
                        least, needed, layer.rows, layer.cols, blocks,
                        double(needed) / double(layer.blocks())));
}

void check_fan_in(const NetworkOptions& options) {
  if (options.constant_fan_in && options.min_per_neuron != 0)
    throw_invalid("network: choose constant_fan_in or min_per_neuron, not both");
}

// Returns the spec of the options, whose other fields say only how weights are drawn.
planner::NetworkSpec checked_spec(const NetworkOptions& options) {
  const NetworkOptions alone{.seed = options.seed,
                             .min_per_neuron = options.min_per_neuron,
                             .constant_fan_in = options.constant_fan_in,
                             .spec = options.spec};
  if (options != alone)
    throw_invalid(
        "network: a spec has sizes, densities that stay, blocks, batch and data type of its "
        "own; leave those of the options, distribution and density_changes out");
  check_fan_in(options);
  planner::check(*options.spec);
  for (const Problem& p : problems_of(*options.spec)) {
    const LayerSize layer{p.size.x, p.size.y, p.block};
    check_least(layer, std::llround(p.density * double(layer.blocks())), options.min_per_neuron);
  }
  return *options.spec;
}

}  // namespace

std::vector<std::int64_t> blocks_at(const NetworkOptions& options, double density) {
  if (options.spec)
    throw_invalid(
        "network: its spec has the density of each layer, which cannot change; leave the "
        "schedule of densities out");
  if (options.sizes.size() < 2)
    throw_invalid(
        fmt::format("network: {} sizes; there must be at least two, the inputs and the "
                    "width of a layer",
                    options.sizes.size()));
  check_fan_in(options);
  std::vector<LayerSize> layers;
  for (std::size_t i = 1; i < options.sizes.size(); ++i)
    layers.push_back({options.sizes[i], options.sizes[i - 1], options.block});
  const std::vector<std::int64_t> blocks = blocks_per_layer(layers, density, options.distribution);
  for (std::size_t i = 0; i < layers.size(); ++i)
    check_least(layers[i], blocks[i], options.min_per_neuron);
  return blocks;
}

planner::NetworkSpec spec_of(const NetworkOptions& options) {
  if (options.spec) return checked_spec(options);
  const std::vector<std::int64_t> blocks = blocks_at(options, options.density);
  planner::NetworkSpec spec{.layers = {},
                            .batch = options.batch,
                            .data_type = options.data_type,
                            .loss = codelets::Loss::SoftmaxCrossEntropy};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const LayerSize layer{options.sizes[i + 1], options.sizes[i], options.block};
    const bool is_last = i + 1 == blocks.size();
    // The last layer of a uniform network stays dense.
    const bool stays_dense =
        !options.density_changes ||
        (options.distribution == Distribution::Uniform && blocks.size() > 1 && is_last);
    const bool is_dense = blocks[i] == layer.blocks() && stays_dense;
    spec.layers.push_back(
        {.outputs = layer.rows,
         .inputs = layer.cols,
         .block = is_dense ? BlockShape{} : options.block,
         .density = double(blocks[i]) / double(layer.blocks()),
         .activation = {is_last ? codelets::Activation::None : codelets::Activation::Relu}});
  }
  planner::check(spec);
  return spec;
}

std::vector<sparse::Csr<float>> first_weights(const NetworkOptions& options) {
  Random random(options.seed);
  std::vector<sparse::Csr<float>> weights;
  for (const Problem& p : problems_of(spec_of(options))) {
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

}  // namespace tessera::train
