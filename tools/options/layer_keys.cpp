#include "tessera/tools/options/layer_keys.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"

namespace tessera::tools {
namespace {

using Json = nlohmann::ordered_json;

// Returns the value that has one of two spellings.
template <class T>
T one_of(const Json& value, std::initializer_list<std::pair<Json, T>> legal,
         const std::string& place, const char* legal_text) {
  for (const auto& [spelling, meaning] : legal)
    if (value == spelling) return meaning;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{} is {}; it must be {}", place, value.dump(-1, ' ', true), legal_text));
}

}  // namespace

LayerKeys take_layer_keys(std::string& json, const std::string& where) {
  LayerKeys keys;
  Json options = Json::parse(json, nullptr, false);
  if (!options.is_object()) return keys;
  const std::size_t all = options.size();
  const auto take = [&](const char* key, auto& value, auto legal, const char* legal_text) {
    const auto found = options.find(key);
    if (found == options.end()) return;
    value = one_of(*found, legal, fmt::format("{}: {}", where, key), legal_text);
    options.erase(found);
  };
  using Switch = std::initializer_list<std::pair<Json, bool>>;
  using Type = std::initializer_list<std::pair<Json, DataType>>;
  const Switch switches{{true, true}, {"true", true}, {false, false}, {"false", false}};
  take("doGradAPass", keys.grad_a, switches, "true or false");
  take("doGradWPass", keys.grad_w, switches, "true or false");
  const Type types{{"float", DataType::Float}, {"half", DataType::Half}};
  take("partialsType", keys.partials_type, types, "float or half");
  if (options.size() != all) json = options.dump();
  return keys;
}

}  // namespace tessera::tools
