#include "tessera/planner/network_json.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/planner/internal/plan_fields.hpp"

namespace tessera::planner {
namespace {

json::Names<codelets::Activation> activation_names() {
  using enum codelets::Activation;
  return {{None, "none"}, {Relu, "relu"}, {Gelu, "gelu"}};
}
json::Names<codelets::Loss> loss_names() {
  using enum codelets::Loss;
  return {{SoftmaxCrossEntropy, "softmax-cross-entropy"}, {MeanSquaredError, "mean-squared-error"}};
}
// The rules with the numbers that a file need not give; that of an optimiser with its own.
json::Names<codelets::Rule> rule_names(const codelets::Optimiser& optimiser) {
  constexpr double kRate = 0.01, kMomentum = 0.9;
  json::Names<codelets::Rule> names{{codelets::Sgd{kRate, 0}, "sgd"},
                                    {codelets::Sgd{kRate, kMomentum}, "momentum"},
                                    {codelets::AdaGrad{kRate, 1e-8}, "adagrad"},
                                    {codelets::Adam{.learning_rate = kRate}, "adam"},
                                    {codelets::AdamW{.learning_rate = kRate}, "adamw"},
                                    {codelets::Nesterov{kRate, kMomentum}, "nesterov"},
                                    {codelets::TorchSgd{kRate, kMomentum}, "torch-sgd"}};
  for (auto& [rule, name] : names)
    if (name == codelets::name_of(optimiser)) rule = optimiser.rule;
  return names;
}

// The key of a number of a rule in the file.
std::string key_of(const codelets::RuleNumber& number) {
  return number.name == "learning_rate" ? "rate" : std::string(number.name);
}

// The parts of a network as the file has them. Members that the file may leave out, or has in
// another form than the network, are optional.
struct LayerText {
  NetworkLayer layer;
  std::optional<json::Value> block;
  std::optional<double> cap, density;
  std::optional<bool> dense;
  std::optional<std::string> weights;
};
struct OptimiserText {
  codelets::Optimiser optimiser;
};
struct NetworkText {
  std::int64_t batch = 0;
  DataType data_type = DataType::Half;
  std::vector<LayerText> layers;
  std::optional<codelets::Loss> loss;
  std::optional<OptimiserText> optimiser;
};

using internal::kSizes;
using internal::MaybeConst;

void describe(auto& fields, MaybeConst<LayerText> auto& text) {
  auto& layer = text.layer;
  fields("inputs", layer.inputs, kSizes);
  fields("outputs", layer.outputs, kSizes);
  fields("block_size", text.block);
  fields.if_given("bias", layer.bias);
  fields.if_given("activation", layer.activation.kind, activation_names());
  fields.if_given("operands", layer.operands, internal::placement_names());
  fields.if_given("recompute", layer.recompute);
  fields("dense", text.dense);
  fields("density", text.density);
  fields("cap", text.cap, json::Above{0});
  fields("weights", text.weights);
}

void describe(auto& fields, MaybeConst<OptimiserText> auto& text) {
  auto& [optimiser] = text;
  fields("rule", optimiser.rule, rule_names(optimiser));
  codelets::Optimiser changed = optimiser;
  fields.if_given("rescale", changed.rescale);
  fields.if_given("weight_decay", changed.weight_decay);
  fields("clip", changed.clip);
  for (const codelets::RuleNumber& one : codelets::numbers_of(changed.rule))
    if (one.value != nullptr) fields.if_given(key_of(one), *one.value);
  if constexpr (!std::is_const_v<std::remove_reference_t<decltype(text)>>) optimiser = changed;
}

void describe(auto& fields, MaybeConst<NetworkText> auto& text) {
  fields("batch", text.batch, kSizes);
  fields.if_given("data_type", text.data_type, internal::type_names());
  fields("layers", text.layers);
  fields("loss", text.loss, loss_names());
  fields("optimiser", text.optimiser);
}

// Reads the block of R: its side, or its rows and columns.
BlockShape read_block(const json::Value& value, const json::Place& place) {
  constexpr json::WholeRange kSides{1, 1024};
  BlockShape block;
  if (std::holds_alternative<json::List>(value.data)) {
    json::RowReader sides(value, place);
    sides(block.rows, kSides);
    sides(block.cols, kSides);
    sides.finish();
  } else {
    json::read(value, place, block.rows, kSides);
    block.cols = block.rows;
  }
  return block;
}

NetworkLayer layer_of(const LayerText& text, const json::Place& place) {
  const auto& [given, block, cap, density, dense, weights] = text;
  NetworkLayer layer = given;
  layer.dense = dense.value_or(false);
  if (block) layer.block = read_block(*block, place.member("block_size"));
  if (cap && layer.activation.kind != codelets::Activation::Relu)
    json::throw_bad(place.member("cap"), fmt::format("{}", *cap),
                    "left out unless the activation is relu");
  if (cap && !(*cap >= double(std::numeric_limits<float>::denorm_min()) &&
               *cap <= double(std::numeric_limits<float>::max())))
    json::throw_bad(place.member("cap"), fmt::format("{}", *cap), "in the range of float");
  if (cap) layer.activation.cap = float(*cap);
  if (weights && weights->empty())
    json::throw_bad(place.member("weights"), "empty", "the name of a file, or left out");
  if (layer.dense && density)
    json::throw_bad(place.member("density"), fmt::format("{}", *density),
                    "left out of a dense layer");
  if (!layer.dense && density.has_value() == weights.has_value())
    json::throw_bad(place, "with both or neither of density and weights", "with one of them");
  layer.density = density.value_or(1);
  if (!(layer.density >= 0 && layer.density <= 1))
    json::throw_bad(place.member("density"), fmt::format("{}", layer.density), "in [0, 1]");
  return layer;
}

LayerText text_of(const NetworkLayer& layer) {
  const auto [rows, cols] = layer.block;
  LayerText text{.layer = layer,
                 .block = rows == cols ? json::Value(rows) : json::List{rows, cols}};
  if (layer.dense)
    text.dense = true;
  else
    text.density = layer.density;
  if (layer.activation.cap != std::numeric_limits<float>::infinity())
    text.cap = double(layer.activation.cap);
  return text;
}

}  // namespace

std::string to_json(const NetworkSpec& spec) {
  NetworkText text{.batch = spec.batch, .data_type = spec.data_type, .loss = spec.loss};
  for (const NetworkLayer& layer : spec.layers) text.layers.push_back(text_of(layer));
  if (spec.loss) text.optimiser = {spec.optimiser};
  return internal::to_json_object(text).dump();
}

NetworkFile parse_network(std::string_view text, std::string_view where) {
  const json::Value value = json::parse(text, where);
  const auto network = internal::read_object<NetworkText>(value, {where, ""});
  const json::Place layers{where, "layers"};
  constexpr std::size_t kMostLayers = 1024;
  if (network.layers.empty() || network.layers.size() > kMostLayers)
    json::throw_bad(layers, fmt::format("a list of {}", network.layers.size()),
                    "a list of 1 to 1024 layers");
  if (network.optimiser && !network.loss)
    json::throw_bad({where, "optimiser"}, value.at("optimiser"), "left out without a loss");
  NetworkFile file{{.batch = network.batch, .data_type = network.data_type, .loss = network.loss}};
  if (network.optimiser) file.spec.optimiser = network.optimiser->optimiser;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    file.spec.layers.push_back(layer_of(network.layers[i], layers.item(i)));
    file.weights.push_back(network.layers[i].weights.value_or(""));
  }
  json::check_as_input(where, [&] { check(file.spec); });
  return file;
}

}  // namespace tessera::planner
