#include "tessera/tools/options/layer_keys.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/json/value.hpp"

namespace tessera::tools {
namespace {

using Json = json::Value;

// Returns the value that has one of two spellings.
template <class T>
T one_of(const Json& value, std::initializer_list<std::pair<Json, T>> legal,
         const std::string& place, const char* legal_text) {
  for (const auto& [spelling, meaning] : legal)
    if (value == spelling) return meaning;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{} is {}; it must be {}", place, json::shown(value), legal_text));
}

}  // namespace

LayerKeys take_layer_keys(std::string& json, const std::string& where) {
  LayerKeys keys;
  Json options = json::parse_if_json(json).value_or(Json());
  if (!options.is_object()) return keys;
  const Json all = options;
  const auto take = [&](const char* key, auto& value, auto legal, const char* legal_text) {
    const Json* const found = json::find(options, key);
    if (found == nullptr) return;
    value = one_of(*found, legal, fmt::format("{}: {}", where, key), legal_text);
    options.erase(key);
  };
  using Switch = std::initializer_list<std::pair<Json, bool>>;
  using Type = std::initializer_list<std::pair<Json, DataType>>;
  const Switch switches{{true, true}, {"true", true}, {false, false}, {"false", false}};
  take("doGradAPass", keys.grad_a, switches, "true or false");
  take("doGradWPass", keys.grad_w, switches, "true or false");
  const Type types{{"float", DataType::Float}, {"half", DataType::Half}};
  take("partialsType", keys.partials_type, types, "float or half");
  if (options != all) json = options.dump();
  return keys;
}

}  // namespace tessera::tools
