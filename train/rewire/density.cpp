#include "tessera/train/rewire/density.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::train {
namespace {

[[noreturn]] void refuse_density(const std::string& what) {
  throw_invalid("densities of layers: " + what);
}

void check_layers(std::span<const LayerSize> layers, double density) {
  if (layers.empty()) refuse_density("there are no layers; the minimum is 1");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerSize& l = layers[i];
    if (std::min({l.rows, l.cols, l.block.rows, l.block.cols}) < 1)
      refuse_density(fmt::format("layer {} is {} x {} in blocks of {} x {}; sides must be above 0",
                                 i + 1, l.rows, l.cols, l.block.rows, l.block.cols));
  }
  if (!(density > 0 && density <= 1))
    refuse_density(fmt::format(
        "the density is {}; it must be above 0 and at most 1, where 1 is dense", density));
}

double blocks_of_all(std::span<const LayerSize> layers) {
  double sum = 0;
  for (const LayerSize& l : layers) sum += double(l.blocks());
  return sum;
}

std::vector<std::int64_t> uniform_blocks(std::span<const LayerSize> layers, double density) {
  std::vector<std::int64_t> blocks;
  for (const LayerSize& l : layers) blocks.push_back(std::llround(density * double(l.blocks())));
  if (layers.size() > 1) blocks.back() = layers.back().blocks();
  return blocks;
}

// Returns densities in proportion to (x + y) / (x * y), of the sides without padding, by which the
// layers store `wanted` blocks.
// While the largest exceeds 1, that layer is made dense and the rest scaled again, so there are at
// most as many rounds as layers.
std::vector<double> densities_for(std::span<const LayerSize> layers, double wanted) {
  std::vector<double> result(layers.size(), 1.0);
  std::vector<bool> is_dense(layers.size());
  const auto raw = [&](std::size_t i) {
    return double(layers[i].rows + layers[i].cols) / double(layers[i].rows) /
           double(layers[i].cols);
  };
  for (;;) {
    double left = wanted, weighted = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const double blocks = double(layers[i].blocks());
      is_dense[i] ? left -= blocks : weighted += blocks * raw(i);
    }
    if (weighted == 0) return result;
    std::size_t largest = layers.size();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (is_dense[i]) continue;
      result[i] = raw(i) * left / weighted;
      if (largest == layers.size() || result[i] > result[largest]) largest = i;
    }
    if (result[largest] <= 1) return result;
    result[largest] = 1;
    is_dense[largest] = true;
  }
}

// Rounds shares down and gives the blocks that the total then lacks to the largest fractions.
std::vector<std::int64_t> erdos_renyi_blocks(std::span<const LayerSize> layers, double density) {
  std::vector<std::int64_t> blocks(layers.size());
  std::vector<double> rest(layers.size());
  std::int64_t missing = std::llround(density * blocks_of_all(layers));
  const std::vector<double> densities = densities_for(layers, double(missing));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const double share = densities[i] * double(layers[i].blocks());
    // A share that is whole but for rounding in double must not lose a block.
    blocks[i] = std::min(layers[i].blocks(), std::int64_t(std::floor(share + 1e-6)));
    rest[i] = share - double(blocks[i]);
    missing -= blocks[i];
  }
  std::vector<std::size_t> order(layers.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rest[a] > rest[b]; });
  for (std::size_t next = 0; missing > 0; next = (next + 1) % order.size()) {
    std::int64_t& held = blocks[order[next]];
    if (held == layers[order[next]].blocks()) continue;
    ++held;
    --missing;
  }
  return blocks;
}

std::vector<std::int64_t> blocks_at(std::span<const LayerSize> layers, double density,
                                    Distribution distribution) {
  switch (distribution) {
    case Distribution::Uniform:
      return uniform_blocks(layers, density);
    case Distribution::ErdosRenyi:
      return erdos_renyi_blocks(layers, density);
  }
  return {};
}

bool all_have_some(const std::vector<std::int64_t>& blocks) {
  return std::find(blocks.begin(), blocks.end(), 0) == blocks.end();
}

// Returns a density with three digits, close to the least one at which every layer has a block.
double least_density(std::span<const LayerSize> layers, double low, Distribution distribution) {
  double high = 1;  // every layer is dense there
  while (high > low * 1.001) {
    const double middle = std::sqrt(low * high);
    (all_have_some(blocks_at(layers, middle, distribution)) ? high : low) = middle;
  }
  const double digit = std::pow(10, std::floor(std::log10(high)) - 2);
  return std::min(1.0, std::ceil(high / digit) * digit);
}

}  // namespace

const char* to_string(Distribution distribution) {
  switch (distribution) {
    case Distribution::Uniform:
      return "uniform";
    case Distribution::ErdosRenyi:
      return "erk";
  }
  return "";
}

std::int64_t LayerSize::blocks() const {
  return checked_mul(ceil_div(rows, block.rows), ceil_div(cols, block.cols), "blocks of a layer");
}

std::vector<double> erdos_renyi_densities(std::span<const LayerSize> layers, double density) {
  check_layers(layers, density);
  double wanted = 0;
  for (const LayerSize& l : layers)
    wanted += double(l.blocks()) - std::floor((1 - density) * double(l.blocks()));
  return densities_for(layers, wanted);
}

std::vector<std::int64_t> blocks_per_layer(std::span<const LayerSize> layers, double density,
                                           Distribution distribution) {
  check_layers(layers, density);
  std::vector<std::int64_t> blocks = blocks_at(layers, density, distribution);
  if (all_have_some(blocks)) return blocks;
  const auto empty = std::find(blocks.begin(), blocks.end(), 0) - blocks.begin();
  refuse_density(fmt::format("at density {} layer {} of {} x {} has no block; density {:.3g} works",
                             density, empty + 1, layers[std::size_t(empty)].rows,
                             layers[std::size_t(empty)].cols,
                             least_density(layers, density, distribution)));
}

}  // namespace tessera::train
