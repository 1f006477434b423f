#include "tessera/json/reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/tests/support/message_of.hpp"

namespace tessera::json {
namespace {

using tessera::test::message_of;

enum class Colour { Red, Blue };
std::string to_string(Colour colour) { return colour == Colour::Red ? "red" : "blue"; }

struct Fields {
  std::int64_t count = 0;
  double rate = 0;
  std::string name;
  bool flag = false;
  Colour colour = Colour::Red;
  std::vector<std::int64_t> sizes;
  std::optional<std::int64_t> extra;
};

Fields read_fields(const std::string& text) {
  const Value value = parse(text, "f");
  ObjectReader fields(value, {"f", "top"});
  Fields result;
  fields("count", result.count, WholeRange{1, 9});
  fields("rate", result.rate, Above{0});
  fields("name", result.name);
  fields("flag", result.flag);
  fields("colour", result.colour, names_of({Colour::Red, Colour::Blue}));
  fields("sizes", result.sizes, WholeRange{0, 100});
  fields("extra", result.extra, WholeRange{0, 1});
  fields.finish();
  return result;
}

// The object with one member replaced by `text`, or left out if `text` is empty.
std::string with(const std::string& key, const std::string& text) {
  std::string result;
  for (const auto& [k, v] :
       std::vector<std::pair<std::string, std::string>>{{"count", "3"},
                                                        {"rate", "0.5"},
                                                        {"name", "\"n\""},
                                                        {"flag", "true"},
                                                        {"colour", "\"blue\""},
                                                        {"sizes", "[1, 100]"}}) {
    const std::string& value = k == key ? text : v;
    if (!value.empty()) result += (result.empty() ? "" : ", ") + ("\"" + k + "\": " + value);
  }
  return "{" + result + "}";
}

TEST(JsonReader, ReadsEveryTypeOfField) {
  const Fields fields = read_fields(with("", ""));
  EXPECT_EQ(fields.count, 3);
  EXPECT_EQ(fields.rate, 0.5);
  EXPECT_EQ(fields.name, "n");
  EXPECT_TRUE(fields.flag);
  EXPECT_EQ(fields.colour, Colour::Blue);
  EXPECT_EQ(fields.sizes, (std::vector<std::int64_t>{1, 100}));
  EXPECT_FALSE(fields.extra.has_value());
}

TEST(JsonReader, NamesThePathTheValueAndTheLegalValues) {
  const auto message = [](const std::string& key, const std::string& text) {
    return message_of([&] { read_fields(with(key, text)); });
  };
  EXPECT_EQ(message("count", "10"), "f: top.count is 10; it must be a whole number in 1..9");
  EXPECT_EQ(message("count", "3.0"), "f: top.count is 3.0; it must be a whole number in 1..9");
  EXPECT_EQ(message("count", "9223372036854775808"),
            "f: top.count is 9.223372036854776e+18; it must be a whole number in 1..9");
  EXPECT_EQ(message("rate", "0"), "f: top.rate is 0; it must be a finite number above 0");
  EXPECT_EQ(message("name", "[]"), "f: top.name is an array; it must be a text");
  EXPECT_EQ(message("flag", "0"), "f: top.flag is 0; it must be true or false");
  EXPECT_EQ(message("colour", "\"green\""),
            "f: top.colour is \"green\"; it must be one of red, blue");
  EXPECT_EQ(message("sizes", "[1, -1]"),
            "f: top.sizes[1] is -1; it must be a whole number in 0..100");
  EXPECT_EQ(message("sizes", ""), "f: top.sizes is missing; it must be given");
}

TEST(JsonReader, RefusesKeysThatNobodyAskedForAndOtherKindsOfValues) {
  EXPECT_EQ(message_of([] { read_fields("{\"other\": 1, " + with("", "").substr(1)); }),
            "f: top.other is not known (value 1); the keys are count, rate, name, flag, colour, "
            "sizes, extra");
  EXPECT_EQ(message_of([] { read_fields("[]"); }), "f: top is an array; it must be an object");
}

TEST(JsonReader, ReadsRowsOfATableItemByItem) {
  const Value value = parse(R"(["red", 2.5])", "f");
  Colour colour = Colour::Blue;
  double number = 0;
  RowReader row(value, {"f", "rows[3]"});
  row(colour, names_of({Colour::Red, Colour::Blue}));
  EXPECT_EQ(message_of([&] { row.finish(); }),
            "f: rows[3] is a list of 2 items; it must be one of 1 items");
  row(number);
  row.finish();
  EXPECT_EQ(number, 2.5);
  EXPECT_EQ(message_of([&] { row(number); }), "f: rows[3][2] is missing; it must be given");
}

}  // namespace
}  // namespace tessera::json
