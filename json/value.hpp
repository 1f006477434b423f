#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tessera::json {

struct Value;
struct Member;

using List = std::vector<Value>;

// The members of an object in the order of the text. No key occurs twice.
using Object = std::vector<Member>;

// A parsed value: null, a truth value, a whole number, another number, a text, a list or an
// object. A whole number beyond 64 bits is stored as a double.
struct Value {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Object> data;
};

// A key of an object with its value.
struct Member {
  std::string key;
  Value value;
};

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

// Returns a value as a text without spaces, which parse() reads back as the same value. Bytes of
// strings that are not UTF-8 are replaced; numbers that are not finite become null. The keys of an
// object must differ. O(length of the text). Thread-safe.
std::string to_text(const Value& value);

}  // namespace tessera::json
