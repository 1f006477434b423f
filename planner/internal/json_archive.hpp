#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/units.hpp"

// The archive writes values to JSON and reads them back from one list of fields. A type is
// described once,
//   void describe(auto& fields, MaybeConst<Dims> auto& dims) { fields("x", dims.x, kCounts); ... }
// and `fields` is a JsonWriter or a JsonReader. The reader does not trust its input: it throws
// Error{BadInput} that names the place, the value and the legal range. A missing key is an error,
// except for an optional value; a key that no field has is an error too.
namespace tessera::planner::internal {

using Json = nlohmann::ordered_json;

template <class Given, class T>
concept MaybeConst = std::same_as<std::remove_const_t<Given>, T>;

// True for std::vector, which the overloads for lists write and read, and not describe().
template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;

struct WholeRange {
  std::int64_t least = 0, most = 0;
};

// All enumerators of a type with their names in JSON.
template <class E>
using Names = std::vector<std::pair<E, std::string>>;

// Returns the enumerators with their names by to_string().
template <class E>
Names<E> names_of(std::initializer_list<E> all) {
  Names<E> names;
  for (const E e : all) names.emplace_back(e, to_string(e));
  return names;
}

// The place of a value: the name of the text and the path of keys in it.
struct Place {
  std::string_view where;
  std::string path;

  Place member(std::string_view key) const {
    return {where, path.empty() ? std::string(key) : fmt::format("{}.{}", path, key)};
  }
  Place item(std::size_t i) const { return {where, fmt::format("{}[{}]", path, i)}; }
};

// Throws Error{BadInput} "<where>: <path> is <value>; it must be <legal>".
[[noreturn]] void throw_bad(const Place& place, std::string_view value, std::string_view legal);
[[noreturn]] void throw_bad_value(const Place& place, const Json& value, std::string_view legal);
[[noreturn]] void throw_missing(const Place& place);

// Parses JSON. Throws Error{BadInput} if the text is not JSON or has a key twice in one object.
Json parse_strict(std::string_view text, std::string_view where);

// Returns JSON text that keeps every number and has one line for each member.
std::string to_text(const Json& json);

class JsonWriter {
 public:
  explicit JsonWriter(Json& object) : object_(object) { object_ = Json::object(); }

  template <class T, class... Legal>
  void operator()(std::string_view key, const T& value, const Legal&... legal) {
    object_[std::string(key)] = json_of(value, legal...);
  }
  template <class T, class... Legal>
  void operator()(std::string_view key, const std::optional<T>& value, const Legal&... legal) {
    if (value) (*this)(key, *value, legal...);
  }

  // Writes a nested object whose fields belong to the described value itself.
  template <class Describe>
  void group(std::string_view key, Describe&& describe_members) {
    JsonWriter members(object_[std::string(key)]);
    describe_members(members);
  }

 private:
  template <class T>
  requires(!kIsList<T>) static Json json_of(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string>) {
      return Json(value);
    } else {
      Json object;
      JsonWriter fields(object);
      describe(fields, value);
      return object;
    }
  }
  template <std::integral T>
  static Json json_of(T value, WholeRange) {
    return Json(value);
  }
  template <class Unit>
  static Json json_of(const Quantity<Unit>& value, WholeRange) {
    return Json(value.value);
  }
  template <class E>
  static Json json_of(E value, const Names<E>& names) {
    const auto found = std::ranges::find(names, value, &Names<E>::value_type::first);
    TESSERA_ASSERT(found != names.end());
    return Json(found->second);
  }
  template <class T, class... Legal>
  static Json json_of(const std::vector<T>& values, const Legal&... legal) {
    Json array = Json::array();
    for (const T& value : values) array.push_back(json_of(value, legal...));
    return array;
  }

  Json& object_;
};

class JsonReader {
 public:
  JsonReader(const Json& object, Place place) : object_(object), place_(std::move(place)) {
    if (!object_.is_object()) throw_bad_value(place_, object_, "an object");
  }

  template <class T, class... Legal>
  void operator()(std::string_view key, T& value, const Legal&... legal) {
    const Json* member = find(key);
    if (member == nullptr) throw_missing(place_.member(key));
    read(*member, place_.member(key), value, legal...);
  }
  template <class T, class... Legal>
  void operator()(std::string_view key, std::optional<T>& value, const Legal&... legal) {
    const Json* member = find(key);
    value.reset();
    if (member != nullptr) read(*member, place_.member(key), value.emplace(), legal...);
  }
  template <class Describe>
  void group(std::string_view key, Describe&& describe_members) {
    const Json* member = find(key);
    if (member == nullptr) throw_missing(place_.member(key));
    JsonReader members(*member, place_.member(key));
    describe_members(members);
    members.finish();
  }

  // Throws Error{BadInput} for keys that no field has. Call it after all fields were read.
  void finish() const;

 private:
  const Json* find(std::string_view key);

  static void read(const Json& json, const Place& place, bool& value);
  static void read(const Json& json, const Place& place, double& value);
  static void read(const Json& json, const Place& place, std::string& value);
  static void read(const Json& json, const Place& place, std::int64_t& value, WholeRange legal);
  static void read(const Json& json, const Place& place, std::int32_t& value, WholeRange legal) {
    std::int64_t wide = 0;
    read(json, place, wide, legal);
    value = static_cast<std::int32_t>(wide);
  }
  template <class Unit>
  static void read(const Json& json, const Place& place, Quantity<Unit>& value, WholeRange legal) {
    read(json, place, value.value, legal);
  }
  template <class E>
  static void read(const Json& json, const Place& place, E& value, const Names<E>& names) {
    std::string legal = "one of";
    for (const auto& [enumerator, name] : names) {
      if (json == name) return void(value = enumerator);
      legal += (legal.back() == 'f' ? " " : ", ") + name;
    }
    throw_bad_value(place, json, legal);
  }
  template <class T, class... Legal>
  static void read(const Json& json, const Place& place, std::vector<T>& values,
                   const Legal&... legal) {
    if (!json.is_array()) throw_bad_value(place, json, "an array");
    values.assign(json.size(), T{});
    for (std::size_t i = 0; i < values.size(); ++i)
      read(json[i], place.item(i), values[i], legal...);
  }
  template <class T>
  requires(!kIsList<T>) static void read(const Json& json, const Place& place, T& value) {
    JsonReader fields(json, place);
    describe(fields, value);
    fields.finish();
  }

  const Json& object_;
  Place place_;
  std::vector<std::string_view> asked_;
};

// Returns a described value as a JSON object.
template <class T>
Json to_json_object(const T& value) {
  Json object;
  JsonWriter fields(object);
  describe(fields, value);
  return object;
}

}  // namespace tessera::planner::internal
