#include "tessera/json/reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tessera/base/error.hpp"

namespace tessera::json {
namespace {

constexpr std::size_t kLongestShown = 60;

// Returns a text, cut to a short length; bytes that do not print are written as \xNN.
std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, kLongestShown))
    result += c >= ' ' && c <= '~' ? std::string(1, c)
                                   : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  if (text.size() > kLongestShown) result += "...";
  return result;
}

std::string shown_number(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".einf") == text.npos ? text + ".0" : text;
}

// Returns a number of any kind, or nothing.
std::optional<double> number_of(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.data)) return double(*whole);
  if (const auto* number = std::get_if<double>(&value.data)) return *number;
  return {};
}

}  // namespace

std::string shown(const Value& value) {
  struct Show {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool truth) const { return truth ? "true" : "false"; }
    std::string operator()(std::int64_t whole) const { return fmt::format("{}", whole); }
    std::string operator()(std::uint64_t whole) const { return fmt::format("{}", whole); }
    std::string operator()(double number) const { return shown_number(number); }
    std::string operator()(const std::string& text) const { return '"' + printable(text) + '"'; }
    std::string operator()(const List&) const { return "an array"; }
    std::string operator()(const Object&) const { return "an object"; }
  };
  return std::visit(Show(), value.data);
}

Place Place::member(std::string_view key) const {
  return {where, path.empty() ? std::string(key) : fmt::format("{}.{}", path, key)};
}

Place Place::item(std::size_t i) const { return {where, fmt::format("{}[{}]", path, i)}; }

void throw_bad(const Place& place, std::string_view value, std::string_view legal) {
  throw Error(ErrorCode::BadInput,
              fmt::format("{}: {} is {}; it must be {}", place.where,
                          place.path.empty() ? "the text" : place.path, value, legal));
}

void throw_missing(const Place& place) { throw_bad(place, "missing", "given"); }

void read(const Value& value, const Place& place, bool& result) {
  const auto* truth = std::get_if<bool>(&value.data);
  if (truth == nullptr) throw_bad(place, value, "true or false");
  result = *truth;
}

void read(const Value& value, const Place& place, double& result) {
  const std::optional<double> number = number_of(value);
  if (!number || !std::isfinite(*number)) throw_bad(place, value, "a finite number");
  result = *number;
}

void read(const Value& value, const Place& place, double& result, Above legal) {
  const std::optional<double> number = number_of(value);
  if (!number || !std::isfinite(*number) || *number <= legal.bound)
    throw_bad(place, value, fmt::format("a finite number above {}", legal.bound));
  result = *number;
}

void read(const Value& value, const Place& place, std::string& result) {
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr) throw_bad(place, value, "a text");
  result = *text;
}

void read(const Value& value, const Place& place, std::int64_t& result, WholeRange legal) {
  const auto* whole = std::get_if<std::int64_t>(&value.data);
  if (whole == nullptr || *whole < legal.least || *whole > legal.most)
    throw_bad(place, value, fmt::format("a whole number in {}..{}", legal.least, legal.most));
  result = *whole;
}

void read(const Value& value, const Place& place, std::int32_t& result, WholeRange legal) {
  std::int64_t wide = 0;
  read(value, place, wide, legal);
  result = static_cast<std::int32_t>(wide);
}

const List& items_of(const Value& value, const Place& place) {
  const auto* list = std::get_if<List>(&value.data);
  if (list == nullptr) throw_bad(place, value, "an array");
  return *list;
}

ObjectReader::ObjectReader(const Value& value, Place place)
    : object_(value), place_(std::move(place)) {
  if (!std::holds_alternative<Object>(value.data)) throw_bad(place_, value, "an object");
}

const Value* ObjectReader::find(std::string_view key) {
  asked_.emplace_back(key);
  return json::find(object_, key);
}

const Value& ObjectReader::at(std::string_view key) {
  const Value* member = find(key);
  if (member == nullptr) throw_missing(place_.member(key));
  return *member;
}

void ObjectReader::finish() const {
  for (const auto& [key, value] : std::get<Object>(object_.data))
    if (std::ranges::find(asked_, key) == asked_.end())
      throw Error(
          ErrorCode::BadInput,
          fmt::format("{}: {} is not known (value {}); the keys are {}", place_.where,
                      place_.member(printable(key)).path, shown(value), fmt::join(asked_, ", ")));
}

void RowReader::finish() const {
  if (next_ != items_.size())
    throw_bad(place_, fmt::format("a list of {} items", items_.size()),
              fmt::format("one of {} items", next_));
}

}  // namespace tessera::json
