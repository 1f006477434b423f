#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/units.hpp"
#include "tessera/json/value.hpp"

// Reading of values by tables of fields. All functions throw Error{BadInput}, which names the text,
// the path of keys, the value and the legal values.
namespace tessera::json {

// The place of a value: the name of the text and the path of keys in it, which is empty for the
// whole text.
struct Place {
  std::string_view where;
  std::string path;

  Place member(std::string_view key) const;
  Place item(std::size_t i) const;
};

// Throws Error{BadInput} "<where>: <path> is <value>; it must be <legal>".
[[noreturn]] void throw_bad(const Place& place, std::string_view value, std::string_view legal);
template <std::same_as<Value> V>  // nothing that becomes a value: it may be a text, too
[[noreturn]] void throw_bad(const Place& place, const V& value, std::string_view legal) {
  throw_bad(place, std::string_view(shown(value)), legal);
}
[[noreturn]] void throw_missing(const Place& place);

// The legal values of a whole number.
struct WholeRange {
  std::int64_t least = 0, most = 0;
};

// The legal values of a number are finite and above `bound`.
struct Above {
  double bound = 0;
};

// All enumerators of a type with their names in the text.
template <class E>
using Names = std::vector<std::pair<E, std::string>>;

// Returns the enumerators with their names by to_string().
template <class E>
Names<E> names_of(std::initializer_list<E> all) {
  Names<E> names;
  for (const E e : all) names.emplace_back(e, to_string(e));
  return names;
}

// Reads a value of one type. The overloads for whole numbers and enumerators take the legal
// values; a number without them may be any finite one.
void read(const Value& value, const Place& place, bool& result);
void read(const Value& value, const Place& place, double& result);
void read(const Value& value, const Place& place, double& result, Above legal);
void read(const Value& value, const Place& place, std::string& result);
void read(const Value& value, const Place& place, std::int64_t& result, WholeRange legal);
void read(const Value& value, const Place& place, std::int32_t& result, WholeRange legal);

template <class Unit>
void read(const Value& value, const Place& place, Quantity<Unit>& result, WholeRange legal) {
  read(value, place, result.value, legal);
}

template <class E>
void read(const Value& value, const Place& place, E& result, const Names<E>& names) {
  const auto* text = std::get_if<std::string>(&value.data);
  std::string legal = "one of";
  for (const auto& [enumerator, name] : names) {
    if (text != nullptr && *text == name) return void(result = enumerator);
    legal += (legal.back() == 'f' ? " " : ", ") + name;
  }
  throw_bad(place, value, legal);
}

// Runs a check of values that come from a text: its errors become Error{BadInput} "<where>: ...".
template <class Check>
void check_as_input(std::string_view where, Check&& check) {
  try {
    check();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Internal) throw;
    throw Error(ErrorCode::BadInput, std::string(where) + ": " + error.what());
  }
}

// Returns the member of an object that must have it: a double, a text, a truth value or a whole
// number. Throws Error{BadInput}, which names the key.
template <class T>
T member_of(const Value& object, std::string_view key) {
  T result{};
  const Place place{"the text", std::string(key)};
  if constexpr (std::same_as<T, std::int64_t>)
    read(object.at(key), place, result, WholeRange{INT64_MIN, INT64_MAX});
  else
    read(object.at(key), place, result);
  return result;
}

// Returns the items of a list.
const List& items_of(const Value& value, const Place& place);

template <class T, class... Legal>
void read(const Value& value, const Place& place, std::vector<T>& result, const Legal&... legal) {
  const List& items = items_of(value, place);
  result.assign(items.size(), T{});
  for (std::size_t i = 0; i < items.size(); ++i) read(items[i], place.item(i), result[i], legal...);
}

// Reads the members of an object. A missing key is an error, except for an optional value; a key
// that nobody asked for is an error too. The value must outlive the reader.
// Example: const Value value = parse(text, "a.json");
//          ObjectReader fields(value, {"a.json", ""});
//          fields("tiles", tiles, WholeRange{1, 1472});
//          fields.finish();
class ObjectReader {
 public:
  ObjectReader(const Value& value, Place place);

  const Place& place() const { return place_; }
  bool has(std::string_view key) const { return json::find(object_, key) != nullptr; }

  // Returns the value of a key, or nullptr if there is none. The key counts as known from then on.
  const Value* find(std::string_view key);

  // Returns the value of a key, which must be there.
  const Value& at(std::string_view key);

  template <class T, class... Legal>
  void operator()(std::string_view key, T& result, const Legal&... legal) {
    read(at(key), place_.member(key), result, legal...);
  }
  template <class T, class... Legal>
  void operator()(std::string_view key, std::optional<T>& result, const Legal&... legal) {
    result.reset();
    if (const Value* member = find(key))
      read(*member, place_.member(key), result.emplace(), legal...);
  }

  // Throws Error{BadInput} for keys that no field has. Call it after all fields were read.
  void finish() const;

 private:
  const Value& object_;
  Place place_;
  std::vector<std::string> asked_;
};

// Reads the items of a list one after the other, for lists that are rows of a table.
class RowReader {
 public:
  RowReader(const Value& value, Place place)
      : items_(items_of(value, place)), place_(std::move(place)) {}

  template <class T, class... Legal>
  void operator()(T& result, const Legal&... legal) {
    const Place place = place_.item(next_);
    if (next_ == items_.size()) throw_missing(place);
    read(items_[next_++], place, result, legal...);
  }

  // Throws Error{BadInput} if there are more items than were read.
  void finish() const;

 private:
  const List& items_;
  Place place_;
  std::size_t next_ = 0;
};

}  // namespace tessera::json
