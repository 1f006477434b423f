#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/json/value.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::json {
namespace {

using tessera::test::message_of;
using testing::HasSubstr;

std::string parse_refused(const std::string& text, const Limits& limits = {},
                          ErrorCode code = ErrorCode::BadInput) {
  return message_of([&] { parse(text, "a.json", limits); }, code);
}

TEST(JsonParse, KeepsEveryKindOfValueInItsOrder) {
  const Value value = parse(R"({"b": [null, true, -3, 2.5, 18446744073709551615], "a": "t"})", "a");
  const auto& object = std::get<Object>(value.data);
  ASSERT_EQ(object.size(), 2u);
  EXPECT_EQ(object[0].key, "b");
  const auto& list = std::get<List>(object[0].value.data);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(list.at(0).data));
  EXPECT_EQ(std::get<bool>(list.at(1).data), true);
  EXPECT_EQ(std::get<std::int64_t>(list.at(2).data), -3);
  EXPECT_EQ(std::get<double>(list.at(3).data), 2.5);
  EXPECT_EQ(std::get<double>(list.at(4).data), 0x1p64);
  EXPECT_EQ(std::get<std::string>(find(value, "a")->data), "t");
  EXPECT_EQ(find(value, "c"), nullptr);
}

TEST(JsonText, IsReadBackAsTheSameValue) {
  for (const char* text :
       {R"({"b":[null,true,-3,2.5,1.0,0.1,1e+300,9223372036854775807],"a":"\"\\\n\u0001\u00e9"})",
        "[]", "{}", R"([[],{},{"":{"x":[1]}}])", "\"t\""}) {
    const Value value = parse(text, "a");
    EXPECT_EQ(parse(value.dump(), "a"), value);
    EXPECT_EQ(parse(value.dump(2), "a"), value);
  }
  EXPECT_EQ(parse(R"({ "b" : [ 1, 2.0 ] })", "a").dump(), R"({"b":[1,2.0]})");
  EXPECT_EQ(Value("a\xff").dump(), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(Value(std::numeric_limits<double>::infinity()).dump(), "null");
}

TEST(JsonText, IsBuiltMemberByMember) {
  Value plan = {{"tiles", 8},
                {"passes", List{"Fwd", "GradA"}},
                {"reason", nullptr},
                {"size", {{"x", 2}, {"y", 0.5}}},
                {"seed", std::uint64_t(-1)},
                {"times", std::vector<double>{1, 2.5}},
                {"best", std::optional<int>()}};
  plan["cycles"] = std::optional<int>(12);
  plan["tiles"] = true;
  plan["list"].push_back().push_back("x");
  plan.update({{"reason", "none"}});
  plan.erase("times");
  EXPECT_EQ(plan.dump(),
            R"({"tiles":true,"passes":["Fwd","GradA"],"reason":"none","size":{"x":2,"y":0.5},)"
            R"("seed":18446744073709551615,"best":null,"cycles":12,"list":[["x"]]})");
  EXPECT_EQ(plan.at("size").dump(1), "{\n \"x\": 2,\n \"y\": 0.5\n}");
}

TEST(JsonParse, RefusesWhatIsNotJsonInItsOwnWords) {
  for (const char* text : {"", "{", "{]", "[1,]", "{\"a\" 1}", "\"\xff\"", "nul", "{} {}"}) {
    const std::string message = parse_refused(text);
    EXPECT_THAT(message, testing::StartsWith("a.json: not JSON: line 1, byte ")) << text;
    EXPECT_THAT(message, testing::Not(HasSubstr("json.exception"))) << text;
  }
}

TEST(JsonParse, RefusesNumbersBeyondTheRangeOfADouble) {
  EXPECT_THAT(parse_refused("[1e999]"), HasSubstr("number \"1e999\" is beyond the range"));
}

TEST(JsonParse, RefusesAKeyThatIsGivenTwiceAtAnyDepth) {
  EXPECT_EQ(parse_refused(R"({"a": 1, "a": 2})"),
            "a.json: key \"a\" is given twice; it must be given once");
  EXPECT_EQ(parse_refused(R"({"a": [{}, {"b": {"c": 1, "c": 1}}]})"),
            "a.json: key \"c\" of a[1].b is given twice; it must be given once");
  EXPECT_NO_THROW(parse(R"([{"a": 1}, {"a": 1}])", "a"));
}

TEST(JsonParse, HoldsItsLimits) {
  EXPECT_THAT(parse_refused("[[[]]]", {.depth = 2}), HasSubstr("nested too deeply"));
  EXPECT_NO_THROW(parse("[[]]", "a", {.depth = 2}));
  EXPECT_THAT(parse_refused(std::string(1 << 20, '[')), HasSubstr("the limit is 32 levels"));
  EXPECT_THAT(parse_refused("[1, 2]", {.values = 2}, ErrorCode::LimitExceeded),
              HasSubstr("more than 2 values"));
  EXPECT_THAT(parse_refused("[1, 2]", {.bytes = 5}, ErrorCode::LimitExceeded),
              HasSubstr("6 bytes of JSON; the limit is 5"));
}

TEST(JsonShown, IsShortAndPrintable) {
  EXPECT_EQ(shown({std::int64_t{-5}}), "-5");
  EXPECT_EQ(shown({2.0}), "2.0");
  EXPECT_EQ(shown({1e300}), "1e+300");
  EXPECT_EQ(shown({std::string("a\x1b[m")}), "\"a\\x1b[m\"");
  EXPECT_EQ(shown({List()}), "an array");
  EXPECT_EQ(shown({Object()}), "an object");
  EXPECT_LE(shown({std::string(1000, 'a')}).size(), 65u);
}

}  // namespace
}  // namespace tessera::json
