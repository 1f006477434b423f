#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/json/reader.hpp"
#include "tessera/json/value.hpp"

namespace tessera::json {
namespace {

using Foreign = nlohmann::json;

// Builds a value from the events of the parser and checks keys and limits as they come, so that
// memory is bounded before it is allocated.
class Builder : public nlohmann::json_sax<Foreign> {
 public:
  Builder(std::string_view text, std::string_view where, const Limits& limits)
      : text_(text), where_(where), limits_(limits) {}

  Value take() { return std::move(root_); }

  bool null() override { return leaf({}); }
  bool boolean(bool value) override { return leaf({value}); }
  bool number_integer(number_integer_t value) override { return leaf({std::int64_t{value}}); }
  bool number_unsigned(number_unsigned_t value) override {
    return value <= std::uint64_t(INT64_MAX) ? leaf({std::int64_t(value)}) : leaf({double(value)});
  }
  bool number_float(number_float_t value, const string_t&) override { return leaf({value}); }
  bool string(string_t& value) override { return leaf({std::move(value)}); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return open({Object()});
  }
  bool key(string_t& value) override {
    if (!keys_.back().insert(value).second)
      throw_bad({where_, "key " + shown({value}) + path()}, "given twice", "given once");
    std::get<Object>(open_.back()->data).push_back({std::move(value), {}});
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return close();
  }
  bool start_array(std::size_t) override { return open({List()}); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string& token,
                   const Foreign::exception& error) override {
    constexpr int kNumberOverflow = 406;
    const std::string near = shown({token});
    const std::string_view before = text_.substr(0, position);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    throw Error(ErrorCode::BadInput,
                error.id == kNumberOverflow
                    ? fmt::format("{}: line {}, byte {}: number {} is beyond the range of a double",
                                  where_, line, position, near)
                    : fmt::format("{}: not JSON: line {}, byte {}: unexpected letter or end at {}",
                                  where_, line, position, near));
  }

 private:
  // Returns the path of the innermost open object, as the end of a message.
  std::string path() const {
    Place place{where_, ""};
    for (std::size_t i = 0; i + 1 < open_.size(); ++i)
      if (const auto* object = std::get_if<Object>(&open_[i]->data))
        place = place.member(object->back().key);
      else
        place = place.item(std::get<List>(open_[i]->data).size() - 1);
    return place.path.empty() ? "" : " of " + place.path;
  }
  Value& add(Value value) {
    if (++count_ > limits_.values)
      throw FileTooLarge(
          fmt::format("{}: more than {} values; this is the limit", where_, limits_.values));
    if (open_.empty()) return root_ = std::move(value);
    if (auto* object = std::get_if<Object>(&open_.back()->data))
      return object->back().value = std::move(value);
    return std::get<List>(open_.back()->data).emplace_back(std::move(value));
  }
  bool leaf(Value value) {
    add(std::move(value));
    return true;
  }
  bool open(Value value) {
    if (std::ssize(open_) >= limits_.depth)
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}: lists and objects are nested too deeply; the limit is {} levels",
                              where_, limits_.depth));
    open_.push_back(&add(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_, where_;
  Limits limits_;
  Value root_;
  // The open lists and objects, outermost first. A value is moved by its parent only while it is
  // not open.
  std::vector<Value*> open_;
  std::vector<std::set<std::string>> keys_;  // of the open objects
  std::int64_t count_ = 0;
};

}  // namespace

Value parse(std::string_view text, std::string_view where, const Limits& limits) {
  if (std::ssize(text) > limits.bytes)
    throw FileTooLarge(
        fmt::format("{}: {} bytes of JSON; the limit is {}", where, text.size(), limits.bytes));
  Builder builder(text, where, limits);
  Foreign::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

Value parse_own(std::string_view text) { return parse(text, "a text of this program", kAnySize); }

}  // namespace tessera::json
