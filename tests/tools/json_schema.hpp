#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace tessera::test {

// Returns the first breach of a JSON Schema in a value, with its path, or "". It knows the keywords
// that our schemas use; an unknown one is a breach too, so that none is overlooked.
inline std::string schema_breach(const nlohmann::json& schema, const nlohmann::json& value,
                                 const std::string& path = "$");

namespace internal {

inline bool is_of_type(const std::string& type, const nlohmann::json& value) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "boolean") return value.is_boolean();
  return type == "null" && value.is_null();
}

inline std::string object_breach(const nlohmann::json& schema, const nlohmann::json& value,
                                 const std::string& path) {
  if (!value.is_object()) return {};
  for (const auto& key : schema.value("required", nlohmann::json::array()))
    if (!value.contains(key)) return path + ": " + key.get<std::string>() + " is missing";
  const nlohmann::json properties = schema.value("properties", nlohmann::json::object());
  for (const auto& [key, member] : value.items()) {
    const std::string at = path + "." + key;
    std::string breach;
    if (properties.contains(key))
      breach = schema_breach(properties[key], member, at);
    else if (schema.contains("additionalProperties"))
      breach = schema["additionalProperties"].is_boolean()
                   ? (schema["additionalProperties"].get<bool>() ? "" : at + " is not foreseen")
                   : schema_breach(schema["additionalProperties"], member, at);
    if (!breach.empty()) return breach;
  }
  return {};
}

inline std::string value_breach(const std::string& key, const nlohmann::json& rule,
                                const nlohmann::json& value, const std::string& path) {
  const auto any = [&](auto matches) {
    for (const auto& one : rule)
      if (matches(one)) return std::string();
    return path + " breaks " + key + " " + rule.dump() + ": " + value.dump();
  };
  if (key == "type" && rule.is_array())
    return any([&](const auto& type) { return is_of_type(type, value); });
  if (key == "type") return is_of_type(rule, value) ? "" : path + " is no " + rule.dump();
  if (key == "const") return rule == value ? "" : path + " is not " + rule.dump();
  if (key == "enum") return any([&](const auto& one) { return one == value; });
  if (key == "anyOf")
    return any([&](const auto& one) { return schema_breach(one, value, path).empty(); });
  if (key == "minimum")
    return value.is_number() && value < rule ? path + " is below " + rule.dump() : "";
  if (key == "items") {
    for (std::size_t i = 0; value.is_array() && i < value.size(); ++i)
      if (auto breach = schema_breach(rule, value[i], path + "[" + std::to_string(i) + "]");
          !breach.empty())
        return breach;
    return {};
  }
  const bool is_known = key == "required" || key == "properties" || key == "title" ||
                        key == "additionalProperties" || key == "description" || key == "$schema";
  return is_known ? "" : "the checker does not know " + key;
}

}  // namespace internal

inline std::string schema_breach(const nlohmann::json& schema, const nlohmann::json& value,
                                 const std::string& path) {
  for (const auto& [key, rule] : schema.items())
    if (auto breach = internal::value_breach(key, rule, value, path); !breach.empty())
      return breach;
  return internal::object_breach(schema, value, path);
}

}  // namespace tessera::test
