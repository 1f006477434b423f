#include "tessera/planner/internal/json_archive.hpp"

#include <fmt/ranges.h>

#include <set>

namespace tessera::planner::internal {
namespace {

// Returns a value in the short form in which messages show it.
std::string shown(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  constexpr std::size_t kLongest = 60;
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > kLongest) text.replace(kLongest, std::string::npos, "...");
  return text;
}

// Refuses a key that occurs twice in one object, because it is not defined which value would count.
class TwinKeys {
 public:
  explicit TwinKeys(std::string_view where) : where_(where) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (event == Json::parse_event_t::object_start) {
      keys_.resize(std::size_t(depth) + 1);
      keys_.back().clear();
    } else if (event == Json::parse_event_t::key) {
      if (!keys_[std::size_t(depth) - 1].insert(parsed.get<std::string>()).second)
        throw_bad({where_, "key " + shown(parsed)}, "given twice", "given once");
    }
    return true;
  }

 private:
  std::string_view where_;
  std::vector<std::set<std::string>> keys_;  // of the open objects, by depth
};

}  // namespace

void throw_bad(const Place& place, std::string_view value, std::string_view legal) {
  throw Error(ErrorCode::BadInput,
              fmt::format("{}: {} is {}; it must be {}", place.where,
                          place.path.empty() ? "the text" : place.path, value, legal));
}

void throw_bad_value(const Place& place, const Json& value, std::string_view legal) {
  throw_bad(place, shown(value), legal);
}

void throw_missing(const Place& place) { throw_bad(place, "missing", "given"); }

Json parse_strict(std::string_view text, std::string_view where) {
  TwinKeys twins(where);
  try {
    return Json::parse(text, [&](int depth, Json::parse_event_t event, Json& parsed) {
      return twins(depth, event, parsed);
    });
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::BadInput, fmt::format("{}: not JSON: {}", where, error.what()));
  }
}

std::string to_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void JsonReader::finish() const {
  for (const auto& [key, value] : object_.items())
    if (std::ranges::find(asked_, key) == asked_.end())
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}: {} is not known; the keys are {}", place_.where,
                              place_.member(key).path, fmt::join(asked_, ", ")));
}

const Json* JsonReader::find(std::string_view key) {
  asked_.push_back(key);
  const auto found = object_.find(std::string(key));
  return found == object_.end() ? nullptr : &*found;
}

void JsonReader::read(const Json& json, const Place& place, bool& value) {
  if (!json.is_boolean()) throw_bad_value(place, json, "true or false");
  value = json.get<bool>();
}

void JsonReader::read(const Json& json, const Place& place, double& value) {
  if (!json.is_number() || !std::isfinite(json.get<double>()))
    throw_bad_value(place, json, "a finite number");
  value = json.get<double>();
}

void JsonReader::read(const Json& json, const Place& place, std::string& value) {
  if (!json.is_string()) throw_bad_value(place, json, "a text");
  value = json.get<std::string>();
}

void JsonReader::read(const Json& json, const Place& place, std::int64_t& value, WholeRange legal) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  const bool fits =
      json.is_number_integer() && !(json.is_number_unsigned() && json.get<std::uint64_t>() > kMost);
  if (!fits || json.get<std::int64_t>() < legal.least || json.get<std::int64_t>() > legal.most)
    throw_bad_value(place, json, fmt::format("a whole number in {}..{}", legal.least, legal.most));
  value = json.get<std::int64_t>();
}

}  // namespace tessera::planner::internal
