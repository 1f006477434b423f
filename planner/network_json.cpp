#include "tessera/planner/network_json.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/json/reader.hpp"

namespace tessera::planner {
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
// The rules with the numbers that a file need not give.
json::Names<codelets::Rule> rule_names() {
  constexpr double kRate = 0.01, kMomentum = 0.9;
  return {{codelets::Sgd{kRate, 0}, "sgd"},
          {codelets::Sgd{kRate, kMomentum}, "momentum"},
          {codelets::AdaGrad{kRate, 1e-8}, "adagrad"},
          {codelets::Adam{.learning_rate = kRate}, "adam"},
          {codelets::AdamW{.learning_rate = kRate}, "adamw"},
          {codelets::Nesterov{kRate, kMomentum}, "nesterov"},
          {codelets::TorchSgd{kRate, kMomentum}, "torch-sgd"}};
}
json::Names<Placement> placement_names() {
  return json::names_of({Placement::AsLeft, Placement::AtHome, Placement::EvenSpread});
}
json::Names<DataType> type_names() {
  return json::names_of({DataType::Half, DataType::Float, DataType::BFloat16});
}

// Reads a member if there is one.
template <class T, class... Legal>
void read_if_given(json::ObjectReader& fields, std::string_view key, T& to, const Legal&... legal) {
  if (const json::Value* const value = fields.find(key))
    json::read(*value, fields.place().member(key), to, legal...);
}

// Reads the block of R: its side, or its rows and columns.
BlockShape read_block(json::ObjectReader& fields) {
  constexpr json::WholeRange kSides{1, 1024};
  BlockShape block;
  const json::Value* const value = fields.find("block_size");
  if (value == nullptr) return block;
  const json::Place place = fields.place().member("block_size");
  if (std::holds_alternative<json::List>(value->data)) {
    json::RowReader sides(*value, place);
    sides(block.rows, kSides);
    sides(block.cols, kSides);
    sides.finish();
  } else {
    json::read(*value, place, block.rows, kSides);
    block.cols = block.rows;
  }
  return block;
}

void read_layer(const json::Value& value, const json::Place& place, NetworkLayer& layer,
                std::string& weights) {
  json::ObjectReader fields(value, place);
  fields("inputs", layer.inputs, kSizes);
  fields("outputs", layer.outputs, kSizes);
  layer.block = read_block(fields);
  read_if_given(fields, "bias", layer.bias);
  read_if_given(fields, "activation", layer.activation.kind, activation_names());
  std::optional<double> cap;
  fields("cap", cap, json::Above{0});
  if (cap && layer.activation.kind != codelets::Activation::Relu)
    json::throw_bad(place.member("cap"), fmt::format("{}", *cap),
                    "left out unless the activation is relu");
  if (cap && !(*cap >= double(std::numeric_limits<float>::denorm_min()) &&
               *cap <= double(std::numeric_limits<float>::max())))
    json::throw_bad(place.member("cap"), fmt::format("{}", *cap), "in the range of float");
  if (cap) layer.activation.cap = float(*cap);
  read_if_given(fields, "dense", layer.dense);
  read_if_given(fields, "recompute", layer.recompute);
  read_if_given(fields, "operands", layer.operands, placement_names());
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

// The key of a number of a rule in the file.
std::string key_of(const codelets::RuleNumber& number) {
  return number.name == "learning_rate" ? "rate" : std::string(number.name);
}

void read_optimiser(const json::Value& value, const json::Place& place,
                    codelets::Optimiser& optimiser) {
  json::ObjectReader fields(value, place);
  fields("rule", optimiser.rule, rule_names());
  for (const codelets::RuleNumber& one : codelets::numbers_of(optimiser.rule))
    if (one.value != nullptr) read_if_given(fields, key_of(one), *one.value);
  read_if_given(fields, "rescale", optimiser.rescale);
  read_if_given(fields, "weight_decay", optimiser.weight_decay);
  fields("clip", optimiser.clip);
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

template <class E>
std::string name_in(const json::Names<E>& names, const E& value) {
  for (const auto& [enumerator, name] : names)
    if (enumerator == value) return name;
  assertion_failed("every value has a name", __FILE__, __LINE__);
}

json::Value layer_json(const NetworkLayer& layer) {
  const BlockShape& block = layer.block;
  json::Value value{{"inputs", layer.inputs},
                    {"outputs", layer.outputs},
                    {"block_size", block.rows == block.cols ? json::Value(block.rows)
                                                            : json::List{block.rows, block.cols}},
                    {"bias", layer.bias},
                    {"activation", name_in(activation_names(), layer.activation.kind)},
                    {"operands", name_in(placement_names(), layer.operands)},
                    {"recompute", layer.recompute}};
  if (layer.dense)
    value["dense"] = true;
  else
    value["density"] = layer.density;
  if (layer.activation.cap != std::numeric_limits<float>::infinity())
    value["cap"] = double(layer.activation.cap);
  return value;
}

json::Value optimiser_json(codelets::Optimiser optimiser) {
  json::Value value{{"rule", std::string(codelets::name_of(optimiser))},
                    {"rescale", optimiser.rescale},
                    {"weight_decay", optimiser.weight_decay}};
  if (optimiser.clip) value["clip"] = *optimiser.clip;
  for (const codelets::RuleNumber& one : codelets::numbers_of(optimiser.rule))
    if (one.value != nullptr) value[key_of(one)] = *one.value;
  return value;
}

}  // namespace

std::string to_json(const NetworkSpec& spec) {
  json::Value layers = json::List();
  for (const NetworkLayer& layer : spec.layers) layers.push_back(layer_json(layer));
  json::Value value{{"batch", spec.batch},
                    {"data_type", name_in(type_names(), spec.data_type)},
                    {"layers", std::move(layers)}};
  if (spec.loss) {
    value["loss"] = name_in(loss_names(), *spec.loss);
    value["optimiser"] = optimiser_json(spec.optimiser);
  }
  return value.dump();
}

NetworkFile parse_network(std::string_view text, std::string_view where) {
  NetworkFile file;
  const json::Value value = json::parse(text, where);
  json::ObjectReader fields(value, {where, ""});
  fields("batch", file.spec.batch, kSizes);
  file.spec.data_type = DataType::Half;
  read_if_given(fields, "data_type", file.spec.data_type, type_names());
  read_layers(fields.at("layers"), fields.place().member("layers"), file);
  fields("loss", file.spec.loss, loss_names());
  if (const json::Value* optimiser = fields.find("optimiser")) {
    const json::Place place = fields.place().member("optimiser");
    if (!file.spec.loss) json::throw_bad(place, *optimiser, "left out without a loss");
    read_optimiser(*optimiser, place, file.spec.optimiser);
  }
  fields.finish();
  json::check_as_input(where, [&] { check(file.spec); });
  return file;
}

}  // namespace tessera::planner
