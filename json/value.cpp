#include "tessera/json/value.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"

namespace tessera::json {
namespace {

using Written = nlohmann::ordered_json;

// Converts a value for the library that writes the text.
struct Convert {
  Written operator()(std::monostate) const { return nullptr; }
  Written operator()(const List& list) const {
    Written result = Written::array();
    for (const Value& item : list) result.push_back(std::visit(*this, item.data));
    return result;
  }
  Written operator()(const Object& object) const {
    Written::object_t result;
    for (const auto& [key, member] : object)
      result.emplace_back(key, std::visit(*this, member.data));
    return result;
  }
  Written operator()(const auto& leaf) const { return leaf; }
};

}  // namespace

Value::Value() = default;
Value::Value(std::nullptr_t) {}
Value::Value(std::string text) : data(std::move(text)) {}
Value::Value(std::string_view text) : data(std::string(text)) {}
Value::Value(const char* text) : data(std::string(text)) {}
Value::Value(List list) : data(std::move(list)) {}
Value::Value(Object object) : data(std::move(object)) {}
Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;
Value::Value(std::initializer_list<Member> members) : data(Object(members)) {}

Value& Value::operator[](std::string_view key) {
  if (std::holds_alternative<std::monostate>(data)) data = Object();
  auto* const object = std::get_if<Object>(&data);
  TESSERA_ASSERT(object != nullptr);
  const auto found = std::ranges::find(*object, key, &Member::key);
  return found != object->end() ? found->value
                                : object->emplace_back(Member{std::string(key), {}}).value;
}

Value& Value::push_back(Value value) {
  if (std::holds_alternative<std::monostate>(data)) data = List();
  auto* const list = std::get_if<List>(&data);
  TESSERA_ASSERT(list != nullptr);
  return list->emplace_back(std::move(value));
}

Value& Value::push_back() { return push_back(Value()); }

void Value::update(Value object) {
  auto* const members = std::get_if<Object>(&object.data);
  TESSERA_ASSERT(members != nullptr);
  for (auto& [key, value] : *members) (*this)[key] = std::move(value);
}

void Value::erase(std::string_view key) {
  if (auto* const object = std::get_if<Object>(&data))
    std::erase_if(*object, [key](const Member& member) { return member.key == key; });
}

const Value& Value::at(std::string_view key) const {
  const Value* const found = find(*this, key);
  TESSERA_ASSERT(found != nullptr);
  return *found;
}

std::string Value::dump(int indent) const {
  return std::visit(Convert(), data).dump(indent, ' ', false, Written::error_handler_t::replace);
}

bool operator==(const Value& a, const Value& b) { return a.data == b.data; }
bool operator==(const Member& a, const Member& b) { return a.key == b.key && a.value == b.value; }

const Value* find(const Value& value, std::string_view key) {
  const auto* object = std::get_if<Object>(&value.data);
  if (object == nullptr) return nullptr;
  const auto found = std::ranges::find(*object, key, &Member::key);
  return found == object->end() ? nullptr : &found->value;
}

}  // namespace tessera::json
