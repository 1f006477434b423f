#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/units.hpp"
#include "tessera/json/reader.hpp"

// The archive writes values to JSON and reads them back from one list of fields. A type is
// described once,
//   void describe(auto& fields, MaybeConst<Dims> auto& dims) { fields("x", dims.x, kCounts); ... }
// and `fields` is a JsonWriter or a JsonReader. The reader does not trust its input: it throws
// Error{BadInput} that names the place, the value and the legal range. A missing key is an error,
// except for an optional value and for fields.if_given(), whose value then stays; a key that no
// field has is an error too. A value of JSON is written and read as it is.
namespace tessera::planner::internal {

using Json = json::Value;

template <class Given, class T>
concept MaybeConst = std::same_as<std::remove_const_t<Given>, T>;

// True for std::vector, which the overloads for lists write and read, and not describe().
template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;

using json::Names;
using json::names_of;
using json::Place;
using json::throw_bad;
using json::WholeRange;

// Returns JSON text that keeps every number and has one line for each member.
std::string to_text(const Json& json);

class JsonWriter {
 public:
  explicit JsonWriter(Json& object) : object_(object) { object_ = json::Object(); }

  template <class T, class... Legal>
  void operator()(std::string_view key, const T& value, const Legal&... legal) {
    object_[std::string(key)] = json_of(value, legal...);
  }
  template <class T, class... Legal>
  void operator()(std::string_view key, const std::optional<T>& value, const Legal&... legal) {
    if (value) (*this)(key, *value, legal...);
  }
  template <class T, class... Legal>
  void if_given(std::string_view key, const T& value, const Legal&... legal) {
    (*this)(key, value, legal...);
  }

  // Writes a nested object whose fields belong to the described value itself.
  template <class Describe>
  void group(std::string_view key, Describe&& describe_members) {
    JsonWriter members(object_[std::string(key)]);
    describe_members(members);
  }

 private:
  template <class T>
    requires(!kIsList<T>)
  static Json json_of(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string> ||
                  std::same_as<T, Json>) {
      return Json(value);
    } else {
      Json object;
      JsonWriter fields(object);
      describe(fields, value);
      return object;
    }
  }
  template <class T, class Legal>
    requires std::is_arithmetic_v<T>
  static Json json_of(T value, const Legal&) {
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
    Json array = json::List();
    for (const T& value : values) array.push_back(json_of(value, legal...));
    return array;
  }

  Json& object_;
};

class JsonReader : public json::ObjectReader {
 public:
  using json::ObjectReader::ObjectReader;

  template <class T, class... Legal>
  void operator()(std::string_view key, T& value, const Legal&... legal) {
    read(at(key), place().member(key), value, legal...);
  }
  template <class T, class... Legal>
  void operator()(std::string_view key, std::optional<T>& value, const Legal&... legal) {
    value.reset();
    if (const Json* const member = find(key))
      read(*member, place().member(key), value.emplace(), legal...);
  }
  template <class T, class... Legal>
  void if_given(std::string_view key, T& value, const Legal&... legal) {
    if (const Json* const member = find(key)) read(*member, place().member(key), value, legal...);
  }
  template <class Describe>
  void group(std::string_view key, Describe&& describe_members) {
    JsonReader members(at(key), place().member(key));
    describe_members(members);
    members.finish();
  }

 private:
  template <class T, class... Legal>
  static void read(const json::Value& value, const Place& place, T& result, const Legal&... legal) {
    if constexpr (kIsList<T>) {
      const json::List& items = json::items_of(value, place);
      result.assign(items.size(), {});
      for (std::size_t i = 0; i < items.size(); ++i)
        read(items[i], place.item(i), result[i], legal...);
    } else if constexpr (std::same_as<T, Json>) {
      result = value;
    } else if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string> ||
                         sizeof...(Legal) != 0) {
      json::read(value, place, result, legal...);
    } else {
      JsonReader fields(value, place);
      describe(fields, result);
      fields.finish();
    }
  }
};

// Returns a described value as a JSON object.
template <class T>
Json to_json_object(const T& value) {
  Json object;
  JsonWriter fields(object);
  describe(fields, value);
  return object;
}

// Reads a described value from a JSON object that has its fields and no others.
template <class T>
T read_object(const json::Value& object, Place place) {
  T value;
  JsonReader fields(object, std::move(place));
  describe(fields, value);
  fields.finish();
  return value;
}

}  // namespace tessera::planner::internal
