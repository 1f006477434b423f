#include "tessera/tests/style/option_fields.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tessera::style {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kHeader =
    "#pragma once\n"
    "struct Range {\n"
    "  std::int64_t least, most;\n"
    "};\n"
    "struct Other {\n"
    "  int apart;\n"
    "};\n"
    "// How it runs.\n"
    "struct WalkOptions {\n"
    "  bool fast = false;  // as opposed to slow;\n"
    "  std::optional<Range> range = std::nullopt;\n"
    "  std::function<void(const Step&, int)> progress = {};\n"
    "  Ledger* tiles = nullptr;\n"
    "\n"
    "  friend bool operator==(const WalkOptions&, const WalkOptions&) = default;\n"
    "  static WalkOptions all();\n"
    "  bool any() const { return fast || tiles != nullptr; }\n"
    "};\n";

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  for (const OptionField& field : option_fields(make_source(path, kHeader)))
    names.push_back(field.full_name());
  return names;
}

TEST(OptionFields, AreThoseOfOptionsAndOfTheStructsInThem) {
  EXPECT_THAT(names_in("walk/walk.hpp"),
              ElementsAre("WalkOptions::fast", "WalkOptions::range", "WalkOptions::progress",
                          "WalkOptions::tiles", "Range::least", "Range::most"));
}

TEST(OptionFields, AreThoseOfPublicHeaders) {
  for (const char* path : {"walk/walk.cpp", "walk/internal/walk.hpp", "tests/walk/walk.hpp"})
    EXPECT_THAT(names_in(path), IsEmpty()) << path;
}

Complaints check(const std::string& path, const std::string& text,
                 const UnreadFields& exceptions = {}) {
  return check_options_read({make_source("walk/walk.hpp", kHeader), make_source(path, text)},
                            exceptions);
}

constexpr const char* kReads =
    "if (options.fast && o->tiles) walk(o.range->least, o.range->most);\n"
    "if (o.progress) o.progress(step, 1);\n";

TEST(OptionsRead, AcceptsFieldsThatASourceReads) {
  EXPECT_THAT(check("walk/walk.cpp", kReads), IsEmpty());
}

TEST(OptionsRead, NamesTheFieldThatIsOnlyAssignedOrMentioned) {
  std::string text = kReads;
  text.replace(text.find("options.fast"), 12, "always(fast)");
  for (const char* more : {"", "options.fast = true;\n", "// options.fast\n", "options.faster;\n",
                           "return {.fast = true};\n", "options.fast();\n"})
    EXPECT_THAT(check("walk/walk.cpp", text + more),
                ElementsAre(HasSubstr("walk/walk.hpp: no source reads WalkOptions::fast")))
        << more;
  EXPECT_THAT(check("walk/walk.cpp", text + "if (options.fast == other) return;\n"), IsEmpty());
}

TEST(OptionsRead, CountsNoTestBenchmarkParserOrWriter) {
  for (const char* path : {"tests/walk/walk_test.cpp", "bench/walk.cpp", "examples/walk.cpp",
                           "planner/parse_options.cpp", "planner/plan_json.cpp", "walk/walk.md"})
    EXPECT_EQ(check(path, kReads).size(), 6u) << path;
}

TEST(OptionsRead, TakesExceptionsThatAreNeededOnly) {
  std::string text = kReads;
  text.replace(text.find("options.fast"), 12, "always(fast)");
  EXPECT_THAT(check("walk/walk.cpp", text, {{"WalkOptions::fast", "a reason"}}), IsEmpty());
  EXPECT_THAT(check("walk/walk.cpp", kReads, {{"WalkOptions::fast", "a reason"}}),
              ElementsAre(HasSubstr("WalkOptions::fast is excepted")));
}

}  // namespace
}  // namespace tessera::style
