#include "tessera/train/network_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/io/read_options.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/fit_range.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/sparse/restrict.hpp"

namespace tessera::train {

using planner::NetworkFile;

NetworkFile read_network(std::string_view text, const std::string& path) {
  NetworkFile file = planner::parse_network(text, path);
  for (std::size_t l = 0; l < file.weights.size(); ++l) {
    if (file.weights[l].empty()) continue;
    file.weights[l] = (std::filesystem::path(path).parent_path() / file.weights[l]).string();
    planner::NetworkLayer& layer = file.spec.layers[l];
    const sparse::Csr<double> given = io::read_weights(file.weights[l]).matrix;
    sparse::require_in_range(given, file.spec.data_type, file.weights[l]);
    if (given.rows != layer.outputs || given.cols != layer.inputs)
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}: {} x {} weights; layer {} of {} has {} outputs and {} inputs",
                              file.weights[l], given.rows, given.cols, l + 1, path, layer.outputs,
                              layer.inputs));
    if (layer.dense) continue;
    const sparse::Csr<double> matrix = in_whole_blocks(given, layer.block);
    layer.density = double(matrix.blocks()) / double(matrix.block_rows() * matrix.block_cols());
  }
  return file;
}

void recompute_every_second(planner::NetworkSpec& spec) {
  if (!spec.loss || spec.layers.size() < 2)
    throw_invalid(
        "--recompute is for training steps of two or more layers: other networks keep no "
        "results for later");
  for (std::size_t l = 0; l < spec.layers.size(); ++l)
    spec.layers[l].recompute = l % 2 == 0 && l + 1 < spec.layers.size();
}

namespace {

// Returns the matrix with all of its elements stored.
sparse::Csr<float> with_zeros(const sparse::Csr<float>& given) {
  sparse::Csr<float> all = sparse::random_pattern(given.rows, given.cols, {1, 1}, 1, 1);
  std::ranges::copy(sparse::to_dense(given).elements(), all.values.begin());
  return all;
}

// Draws values for outputs that are sums of so many products.
void draw_values(double terms, std::uint64_t seed, std::vector<float>& values) {
  Random random(seed);
  const double most = std::sqrt(3 / std::max(1.0, terms));
  for (float& value : values) value = float(most * (2 * random.unit() - 1));
}

}  // namespace

sparse::Csr<float> weights_of(const NetworkFile& file, std::int64_t l, std::uint64_t seed) {
  const planner::NetworkLayer& layer = file.spec.layers[std::size_t(l)];
  const std::uint64_t own_seed = seed + 2 * std::uint64_t(l);
  if (const std::string& path = file.weights[std::size_t(l)]; !path.empty()) {
    const io::ReadMatrix given = io::read_weights(path, {.precision = io::Precision::Float});
    auto weights = sparse::cast<float>(given.matrix);
    if (!given.has_values)
      draw_values(double(weights.blocks()) / double(weights.rows), own_seed + 1, weights.values);
    weights = in_whole_blocks(weights, layer.block);
    return layer.dense ? with_zeros(weights) : weights;
  }
  const Dims size = planner::problem_of(file.spec, l).size_in_blocks();
  sparse::Csr<float> weights =
      sparse::random_pattern(size.x, size.y, layer.block, layer.density, own_seed);
  draw_values(layer.density * double(layer.inputs), own_seed + 1, weights.values);
  return weights;
}

}  // namespace tessera::train
