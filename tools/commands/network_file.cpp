#include "tessera/tools/commands/network_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/json/reader.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/run/value_range.hpp"

namespace tessera::tools {
namespace {

constexpr json::WholeRange kSizes{1, std::numeric_limits<std::int32_t>::max()};

json::Names<codelets::Activation> activation_names() {
  using enum codelets::Activation;
  return {{None, "none"}, {Relu, "relu"}, {Gelu, "gelu"}};
}
json::Names<codelets::Loss> loss_names() {
  using enum codelets::Loss;
  return {{SoftmaxCrossEntropy, "softmax-cross-entropy"}, {MeanSquaredError, "mean-squared-error"}};
}
json::Names<codelets::Update> update_names() {
  using enum codelets::Update;
  return {{Sgd, "sgd"}, {Momentum, "momentum"}, {AdaGrad, "adagrad"}, {Adam, "adam"}};
}
json::Names<Placement> placement_names() {
  return {{Placement::AsLeft, "as-left"},
          {Placement::AtHome, "at-home"},
          {Placement::EvenSpread, "even-spread"}};
}
json::Names<DataType> type_names() {
  return {{DataType::Half, "half"}, {DataType::Float, "float"}, {DataType::BFloat16, "bfloat16"}};
}

void read_layer(const json::Value& value, const json::Place& place, planner::NetworkLayer& layer,
                std::string& weights) {
  json::ObjectReader fields(value, place);
  fields("inputs", layer.inputs, kSizes);
  fields("outputs", layer.outputs, kSizes);
  std::optional<std::int64_t> side;
  fields("block_size", side, json::WholeRange{1, 1024});
  layer.block = {side.value_or(1), side.value_or(1)};
  std::optional<bool> bias;
  fields("bias", bias);
  layer.bias = bias.value_or(true);
  std::optional<codelets::Activation> activation;
  fields("activation", activation, activation_names());
  layer.activation.kind = activation.value_or(codelets::Activation::None);
  std::optional<double> cap;
  fields("cap", cap, json::Above{0});
  if (cap && layer.activation.kind != codelets::Activation::Relu)
    json::throw_bad(place.member("cap"), fmt::format("{}", *cap),
                    "left out unless the activation is relu");
  if (cap) layer.activation.cap = float(*cap);
  std::optional<bool> dense, recompute;
  fields("dense", dense);
  fields("recompute", recompute);
  std::optional<Placement> operands;
  fields("operands", operands, placement_names());
  layer.operands = operands.value_or(Placement::AsLeft);
  layer.dense = dense.value_or(false);
  layer.recompute = recompute.value_or(false);
  std::optional<std::string> file;
  fields("weights", file);
  if (file && file->empty())
    json::throw_bad(place.member("weights"), "empty", "the name of a file, or left out");
  weights = file.value_or("");
  std::optional<double> density;
  fields("density", density);
  if (layer.dense && density)
    json::throw_bad(place.member("density"), fmt::format("{}", *density),
                    "left out of a dense layer");
  if (!layer.dense && density.has_value() == file.has_value())
    json::throw_bad(place, "with both or neither of density and weights", "with one of them");
  layer.density = density.value_or(1);
  if (!(layer.density >= 0 && layer.density <= 1))
    json::throw_bad(place.member("density"), fmt::format("{}", layer.density), "in [0, 1]");
  fields.finish();
}

void read_update(const json::Value& value, const json::Place& place, codelets::UpdateRule& rule) {
  json::ObjectReader fields(value, place);
  fields("rule", rule.kind, update_names());
  const auto number = [&](const char* key, double& to) {
    std::optional<double> given;
    fields(key, given);
    to = given.value_or(to);
  };
  number("rate", rule.rate);
  number("momentum", rule.momentum);
  number("beta1", rule.beta1);
  number("beta2", rule.beta2);
  number("epsilon", rule.epsilon);
  fields.finish();
}

void read_layers(const json::Value& value, const json::Place& place, NetworkFile& file) {
  constexpr std::size_t kMostLayers = 1024;
  const json::List& items = json::items_of(value, place);
  if (items.empty() || items.size() > kMostLayers)
    json::throw_bad(place, fmt::format("a list of {}", items.size()), "a list of 1 to 1024 layers");
  file.spec.layers.resize(items.size());
  file.weights.resize(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    read_layer(items[i], place.item(i), file.spec.layers[i], file.weights[i]);
}

// A network that is refused is a fault of its file.
void check_file(const planner::NetworkSpec& spec, std::string_view where) {
  try {
    planner::check(spec);
  } catch (const Error& error) {
    throw Error(ErrorCode::BadInput, fmt::format("{}: {}", where, error.what()));
  }
}

}  // namespace

NetworkFile parse_network(std::string_view text, std::string_view where) {
  NetworkFile file;
  const json::Value value = json::parse(text, where);
  json::ObjectReader fields(value, {where, ""});
  fields("batch", file.spec.batch, kSizes);
  std::optional<DataType> type;
  fields("data_type", type, type_names());
  file.spec.data_type = type.value_or(DataType::Half);
  read_layers(fields.at("layers"), fields.place().member("layers"), file);
  fields("loss", file.spec.loss, loss_names());
  if (const json::Value* update = fields.find("optimiser")) {
    const json::Place place = fields.place().member("optimiser");
    if (!file.spec.loss) json::throw_bad(place, *update, "left out without a loss");
    read_update(*update, place, file.spec.update);
  }
  fields.finish();
  check_file(file.spec, where);
  return file;
}

NetworkFile load_network(const std::string& path) {
  NetworkFile file = parse_network(load_text(path), path);
  for (std::size_t l = 0; l < file.weights.size(); ++l) {
    if (file.weights[l].empty()) continue;
    file.weights[l] = (std::filesystem::path(path).parent_path() / file.weights[l]).string();
    planner::NetworkLayer& layer = file.spec.layers[l];
    const sparse::Csr<double> given = load_weights(file.weights[l]).matrix;
    require_in_range(given, file.spec.data_type, file.weights[l]);
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
    throw Error(ErrorCode::InvalidArgument,
                "--recompute is for training steps of two or more layers: other networks keep no "
                "results for later");
  for (std::size_t l = 0; l < spec.layers.size(); ++l)
    spec.layers[l].recompute = l % 2 == 0 && l + 1 < spec.layers.size();
}

namespace {

// Returns the matrix with all of its elements stored.
sparse::Csr<float> with_zeros(const sparse::Csr<float>& given) {
  sparse::Csr<float> all = sparse::random_pattern(given.rows, given.cols, {1, 1}, 1, 1);
  std::fill(all.values.begin(), all.values.end(), 0.0f);
  for (std::int64_t row = 0; row < given.rows; ++row)
    for (auto i = given.row_begin[std::size_t(row)]; i < given.row_begin[std::size_t(row) + 1]; ++i)
      all.values[std::size_t(row * given.cols + given.col[std::size_t(i)])] =
          given.values[std::size_t(i)];
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
    const io::ReadMatrix given = load_weights(path, {.precision = io::Precision::Float});
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

}  // namespace tessera::tools
