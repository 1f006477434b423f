#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tessera::json {

struct Value;
struct Member;

using List = std::vector<Value>;

// The members of an object in the order of the text. No key occurs twice.
using Object = std::vector<Member>;

// A value: null, a truth value, a whole number, another number, a text, a list or an object.
// parse() stores a whole number beyond the range of int64 as a double; a program may write one as
// uint64. Example: Value plan = {{"tiles", 8}, {"passes", List{"Fwd", "GradA"}}, {"reason",
// nullptr}};
//          plan["cycles"] = 1200;
struct Value {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Object, std::uint64_t>
      data;

  Value();
  Value(std::nullptr_t);
  template <std::same_as<bool> Truth>
  Value(Truth truth);
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  Value(Number number);
  template <std::floating_point Number>
  Value(Number number);
  Value(std::string text);
  Value(std::string_view text);
  Value(const char* text);
  Value(List list);
  Value(Object object);
  Value(std::initializer_list<Member> members);  // an object; the keys must differ
  template <class T>
  Value(const std::vector<T>& list);  // a list of values
  template <class T>
  Value(const std::optional<T>& value);  // null without a value
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();

  // Returns the member of an object, which is added as null if there is none: references to other
  // members are then invalid. Null becomes an object; another kind of value is Error{Internal}.
  // O(members).
  Value& operator[](std::string_view key);

  // Adds to a list; null becomes a list; another kind of value is Error{Internal}. Returns what was
  // added, which is null if nothing is given.
  Value& push_back(Value value);
  Value& push_back();

  // Sets each member of an object in this object.
  void update(Value object);

  // Removes the member of an object, if there is one.
  void erase(std::string_view key);

  // Returns the member of an object. Throws Error{BadInput} "KEY is missing" if there is none.
  const Value& at(std::string_view key) const;
  bool is_object() const { return std::holds_alternative<Object>(data); }

  // Returns the value as text without a line break, or with `indent` blanks for each level. Bytes
  // that are no UTF-8 become U+FFFD, and numbers that JSON does not have become null. O(bytes).
  std::string dump(int indent = -1) const;
};

// A key of an object with its value.
struct Member {
  std::string key;
  Value value;
};

bool operator==(const Value& a, const Value& b);
bool operator==(const Member& a, const Member& b);

// Member is complete from here on.
template <std::same_as<bool> Truth>
Value::Value(Truth truth) : data(truth) {}
template <std::integral Number>
  requires(!std::same_as<Number, bool>)
Value::Value(Number number) : data(std::int64_t(number)) {
  if (!std::in_range<std::int64_t>(number)) data = std::uint64_t(number);
}
template <std::floating_point Number>
Value::Value(Number number) : data(double(number)) {}
template <class T>
Value::Value(const std::vector<T>& list) : data(List(list.begin(), list.end())) {}
template <class T>
Value::Value(const std::optional<T>& value) {
  if (value) *this = Value(*value);
}

// Returns the member of an object, or nullptr if there is none or the value is no object. O(n).
const Value* find(const Value& value, std::string_view key);

// Returns a short text of printable ASCII that shows a value in a message: a number, at most 60
// bytes of a text in quotes, "an array" or "an object".
std::string shown(const Value& value);

// The most that a text may ask for. Memory stays below 64 bytes for each value plus four times the
// bytes of the text.
struct Limits {
  std::int64_t bytes = 100'000'000;
  std::int64_t values = 1 << 20;  ///< of all kinds, in all lists and objects together
  int depth = 32;                 ///< of nested lists and objects
};

// Parses a text. `where` is the name of the text in messages.
//
// Throws Error{BadInput} "<where>: ...", with the byte or the path of keys, for a text that is not
// JSON, a key that is given twice in one object, a number beyond the range of a double, and lists
// and objects that are nested deeper than the limit. Throws FileTooLarge (base/file.hpp), which is
// Error{LimitExceeded}, for more bytes or values than the limits. O(bytes). Thread-safe.
// Example: parse(R"({"tiles": 8})", "machine.json")
Value parse(std::string_view text, std::string_view where, const Limits& limits = {});

inline constexpr Limits kAnySize{.bytes = INT64_MAX, .values = INT64_MAX, .depth = 1000};

// Parses a text that this program wrote itself, of any size. O(bytes). Thread-safe.
Value parse_own(std::string_view text);

// Returns nothing for a text that is not JSON, else its value, of any size. O(bytes). Thread-safe.
std::optional<Value> parse_if_json(std::string_view text);

}  // namespace tessera::json
