#include "tessera/tests/style/header_users.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::style {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kList =
    "set(more deep.hpp)  # deep\ntessera_module(lib\n  HEADERS used.hpp ${more} unused.hpp\n"
    "  SOURCES used.cpp)\n";

// A library of three headers; the program includes one, and its source the second one.
std::vector<SourceFile> small_tree() {
  return {make_source("lib/CMakeLists.txt", kList),
          make_source("lib/used.hpp", "#pragma once\n"),
          make_source("lib/used.cpp", "#include \"tessera/lib/used.hpp\"\n"),
          make_source("lib/used_part.cpp",
                      "#include \"tessera/lib/used.hpp\"\n#include \"tessera/lib/deep.hpp\"\n"),
          make_source("lib/deep.hpp", "#pragma once\n"),
          make_source("lib/unused.hpp", "#pragma once\n"),
          make_source("tests/lib/unused_test.cpp", "#include \"tessera/lib/unused.hpp\"\n"),
          make_source("tools/main.cpp", "#include \"tessera/lib/used.hpp\"\n")};
}

TEST(PublicHeaders, AreThoseOfTheListsOfModulesWithTheirVariables) {
  EXPECT_THAT(public_headers(small_tree()),
              ElementsAre("lib/deep.hpp", "lib/unused.hpp", "lib/used.hpp"));
}

TEST(Programs, AreToolsPythonAndTheExamplesOfTheTable) {
  const auto found = programs(
      {make_source("tools/run.cpp", ""), make_source("python/src/module.cpp", ""),
       make_source("base/error.cpp", ""), make_source("examples/hidden.cpp", ""),
       make_source("examples/README.md", "See `hidden.cpp`.\n| `a.hpp`, `a.cpp` | `b.cpp` |\n")});
  EXPECT_THAT(found, ElementsAre("examples/a.cpp", "examples/a.hpp", "python/src/module.cpp",
                                 "tools/run.cpp"));
}

TEST(ReachedFrom, GoesThroughHeadersTheirSourcesAndTheirParts) {
  EXPECT_THAT(reached_from({"tools/main.cpp"}, small_tree()),
              ElementsAre("lib/deep.hpp", "lib/used.cpp", "lib/used.hpp", "lib/used_part.cpp",
                          "tools/main.cpp"));
  const std::vector<SourceFile> internals = {
      make_source("lib/internal/search.hpp", "#pragma once\n"),
      make_source("lib/search.cpp", "#include \"tessera/lib/deep.hpp\"\n"),
      make_source("lib/deep.hpp", "#pragma once\n"),
      make_source("other/apart.cpp", "#include \"tessera/lib/deep.hpp\"\n")};
  EXPECT_THAT(reached_from({"lib/internal/search.hpp"}, internals),
              ElementsAre("lib/deep.hpp", "lib/internal/search.hpp", "lib/search.cpp"));
}

// dot.cpp says nothing by its name, and implements the header that has no source.
TEST(ReachedFrom, DoesNotTakeASourceForAPartOfEveryHeaderThatItIncludes) {
  std::vector<SourceFile> files = small_tree();
  files.push_back(make_source(
      "lib/dot.cpp", "#include \"tessera/lib/used.hpp\"\n#include \"tessera/lib/unused.hpp\"\n"));
  EXPECT_FALSE(reached_from({"tools/main.cpp"}, files).contains("lib/unused.hpp"));
  EXPECT_TRUE(reached_from({"lib/unused.hpp"}, files).contains("lib/dot.cpp"));
}

TEST(HeadersUsed, NamesOneThatOnlyATestIncludesUnlessItIsExcepted) {
  EXPECT_THAT(check_headers_used(small_tree(), {}),
              ElementsAre(HasSubstr("lib/unused.hpp is used by no")));
  EXPECT_THAT(check_headers_used(small_tree(), {{"lib/unused.hpp", "a reason"}}), IsEmpty());
}

TEST(HeadersUsed, RefusesExceptionsWithoutNeedOrReason) {
  for (const UnusedHeaders& exceptions :
       {UnusedHeaders{{"lib/unused.hpp", ""}},
        UnusedHeaders{{"lib/unused.hpp", "a reason"}, {"lib/used.hpp", "a reason"}},
        UnusedHeaders{{"lib/unused.hpp", "a reason"}, {"lib/gone.hpp", "a reason"}}})
    EXPECT_THAT(check_headers_used(small_tree(), exceptions), ElementsAre(HasSubstr("excepted")));
}

}  // namespace
}  // namespace tessera::style
