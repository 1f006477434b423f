// Each rule has a text it must accept and texts it must reject.
#include "tessera/tests/style/rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tessera/tests/style/source_tree.hpp"
#include "tessera/tests/style/tables.hpp"

namespace tessera::style {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Complaints arrows_of(const std::string& path, const std::string& target) {
  return check_arrows(make_source(path, "#include \"" + target + "\"\n"), arrows());
}

TEST(IncludesOf, FindsQuotesBracketsAndBlanksAndSkipsTheRest) {
  const auto found = includes_of(make_source("a.cpp",
                                             "#include \"tessera/a.hpp\"\n"
                                             "  #  include <vector>  // text\n"
                                             "#include HWY_TARGET_INCLUDE\n"
                                             "// #include \"commented.hpp\"\n"
                                             "#include\n"
                                             "#include \"open\n"
                                             "#define X \"y.hpp\""));
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].target, "tessera/a.hpp");
  EXPECT_TRUE(found[0].quoted);
  EXPECT_EQ(found[1].target, "vector");
  EXPECT_FALSE(found[1].quoted);
  EXPECT_EQ(found[1].line, 2);
}

TEST(OwnerOf, IsTheLongestMatchingFolder) {
  EXPECT_EQ(owner_of("planner/plan.hpp", arrows()), "planner");
  EXPECT_EQ(owner_of("tools/page/report_page.hpp", arrows()), "tools/page");
  EXPECT_EQ(owner_of("tools/page_notes.hpp", arrows()), "tools");
  EXPECT_EQ(owner_of("basement/x.hpp", arrows()), "");
  EXPECT_EQ(owner_of("tessera.hpp", arrows()), "tessera.hpp");
}

TEST(Arrows, AcceptsDownwardsAndItself) {
  EXPECT_THAT(arrows_of("planner/plan.cpp", "tessera/base/dims.hpp"), IsEmpty());
  EXPECT_THAT(arrows_of("planner/plan.cpp", "tessera/planner/plan.hpp"), IsEmpty());
  EXPECT_THAT(arrows_of("tools/run/run.cpp", "tessera/tools/page/report_page.hpp"), IsEmpty());
  EXPECT_THAT(arrows_of("planner/plan.cpp", "tessera/device/machine.hpp"), IsEmpty());
  EXPECT_THAT(arrows_of("runtime/fit.cpp", "tessera/partitioner/buckets.hpp"), IsEmpty());
  EXPECT_THAT(arrows_of("tests/x/y_test.cpp", "tessera/tools/arguments.hpp"), IsEmpty());
  EXPECT_THAT(arrows_of("base/dims.cpp", "vector"), IsEmpty());
}

TEST(Arrows, RejectsUpwardsAndSideways) {
  EXPECT_THAT(
      arrows_of("base/dims.hpp", "tessera/device/machine.hpp"),
      ElementsAre("base/dims.hpp:1 includes tessera/device/machine.hpp, which base may not"));
  const std::vector<std::vector<std::string>> bad = {
      {"planner/plan.cpp", "tessera/device/engine.hpp"},
      {"planner/plan.cpp", "tessera/sparse/formats.hpp"},
      {"planner/plan.cpp", "tessera/partitioner/tile_grid.hpp"},
      {"tools/page/report_page.cpp", "tessera/tools/run/arguments.hpp"},
      {"partitioner/encode.cpp", "tessera/planner/plan.hpp"},
      {"codelets/kernel.cpp", "tessera/device/machine.hpp"},
      {"device/engine.cpp", "tessera/codelets/kernel.hpp"},
      {"sparse/read.cpp", "tessera/device/machine.hpp"},
      {"runtime/fit.cpp", "tessera/tools/arguments.hpp"},
      {"runtime/fit.cpp", "tessera/tests/support/random.hpp"},
      {"base/dims.cpp", "tessera/tessera.hpp"},
      {"base/dims.cpp", "tessera/nowhere/x.hpp"}};
  for (const auto& pair : bad)
    EXPECT_THAT(arrows_of(pair[0], pair[1]), SizeIs(1)) << pair[0] << " -> " << pair[1];
}

TEST(Arrows, RejectsAFolderThatHasNoRow) {
  EXPECT_THAT(arrows_of("novelty/x.cpp", "vector"),
              ElementsAre(HasSubstr("novelty/x.cpp lies in no folder")));
}

Complaints form_of(const std::string& line) {
  return check_include_form(make_source("planner/plan.cpp", line));
}

TEST(IncludeForm, AcceptsRootedQuotesAndForeignBrackets) {
  EXPECT_THAT(form_of("#include \"tessera/planner/plan.hpp\""), IsEmpty());
  EXPECT_THAT(form_of("#include <fmt/format.h>"), IsEmpty());
}

TEST(IncludeForm, RejectsClimbingAndShortPathsAndSwappedMarks) {
  EXPECT_THAT(form_of("#include \"../base/dims.hpp\""), ElementsAre(HasSubstr("from the root")));
  EXPECT_THAT(form_of("#include \"tessera/planner/../base/dims.hpp\""), SizeIs(1));
  EXPECT_THAT(form_of("#include \"plan.hpp\""), SizeIs(1));
  EXPECT_THAT(form_of("#include <tessera/planner/plan.hpp>"), SizeIs(1));
}

Complaints internal_from(const std::string& path) {
  return check_internal(make_source(path, "#include \"tessera/planner/internal/search.hpp\""));
}

TEST(Internal, AcceptsTheOwnFolderAndTests) {
  EXPECT_THAT(internal_from("planner/planner.cpp"), IsEmpty());
  EXPECT_THAT(internal_from("planner/internal/search.cpp"), IsEmpty());
  EXPECT_THAT(internal_from("tests/planner/search_test.cpp"), IsEmpty());
}

TEST(Internal, RejectsEverybodyElse) {
  EXPECT_THAT(internal_from("runtime/fit.cpp"), ElementsAre(HasSubstr("private to planner")));
  EXPECT_THAT(internal_from("bench/search_bench.cpp"), SizeIs(1));
  EXPECT_THAT(internal_from("plannerish/x.cpp"), SizeIs(1));
}

TEST(Foreign, AcceptsThemInSourcesAndPrivateHeaders) {
  EXPECT_THAT(check_foreign(make_source("base/dims.cpp", "#include <fmt/format.h>")), IsEmpty());
  EXPECT_THAT(check_foreign(make_source("a/internal/b.hpp", "#include <hwy/highway.h>")),
              IsEmpty());
  EXPECT_THAT(check_foreign(make_source("base/dims.hpp", "#include <vector>")), IsEmpty());
}

TEST(Foreign, RejectsEachInAPublicHeader) {
  for (const char* target :
       {"tbb/parallel_for.h", "oneapi/tbb/task_arena.h", "boost/graph/adjacency_list.hpp",
        "fmt/format.h", "nlohmann/json.hpp", "CLI/CLI.hpp", "hwy/highway.h"})
    EXPECT_THAT(
        check_foreign(make_source("base/dims.hpp", "#include <" + std::string(target) + ">")),
        SizeIs(1))
        << target;
}

TEST(OwnHeader, ComesFirstWhereThereIsOne) {
  const std::vector<SourceFile> files{make_source("a/b.hpp", "")};
  const auto check = [&](const std::string& path, const std::string& text) {
    return check_own_header(make_source(path, text), files);
  };
  const std::string own = "#include \"tessera/a/b.hpp\"\n", other = "#include <vector>\n";
  EXPECT_THAT(check("a/b.cpp", own + other), IsEmpty());
  EXPECT_THAT(check("a/c.cpp", other), IsEmpty());
  EXPECT_THAT(check("a/b.hpp", other), IsEmpty());
  EXPECT_THAT(check("a/b.cpp", other + own), SizeIs(1));
  EXPECT_THAT(check("a/b.cpp", ""), SizeIs(1));
}

TEST(PragmaOnce, IsAskedOfHeadersOnly) {
  EXPECT_THAT(check_pragma_once(make_source("a/b.hpp", "#pragma once\n")), IsEmpty());
  EXPECT_THAT(check_pragma_once(make_source("a/b.cpp", "int x;\n")), IsEmpty());
  EXPECT_THAT(check_pragma_once(make_source("a/b.hpp", "int x;\n")), SizeIs(1));
  EXPECT_THAT(check_pragma_once(make_source("a/b.hpp", "// #pragma once\n")), SizeIs(1));
}

Complaints namespaces_of(const std::string& path, const std::string& line) {
  return check_namespaces(make_source(path, line), arrows());
}

TEST(Namespaces, AcceptTheFoldersOwnOthersAndUses) {
  for (const char* line :
       {"namespace tessera::planner {", "namespace tessera::planner::internal {",
        "}  // namespace tessera::planner", "namespace {", "namespace CLI {",
        "using namespace tessera;", "  using namespace tessera::tools;", "namespace tesserae {",
        "namespace short_name = tessera::planner;", "// in namespace tessera"})
    EXPECT_THAT(namespaces_of("planner/plan.cpp", line), IsEmpty()) << line;
  EXPECT_THAT(namespaces_of("base/dims.hpp", "namespace tessera {"), IsEmpty());
  EXPECT_THAT(namespaces_of("tests/style/rules.hpp", "namespace tessera::style {"), IsEmpty());
  EXPECT_THAT(namespaces_of("tools/page/report_page.hpp", "namespace tessera::tools {"), IsEmpty());
}

TEST(Namespaces, RejectInlineOnesAndThoseOfOtherFolders) {
  const std::string ours = "namespace tessera";
  for (const char* rest : {" {", "::device {", "::inline v0::planner {", "::planners {"})
    for (const char* before : {"", "  ", "}  // "})
      EXPECT_THAT(namespaces_of("planner/plan.cpp", before + ours + rest), SizeIs(1))
          << before << ours << rest;
  EXPECT_THAT(namespaces_of("base/dims.hpp", "inline namespace tessera {"), SizeIs(1));
}

TEST(MachinePaths, AcceptsPathsOfTheTree) {
  EXPECT_THAT(check_machine_paths(make_source("a.md", "see docs/work/x and ../work/y, /usr/bin")),
              IsEmpty());
}

TEST(MachinePaths, RejectsAbsoluteOnes) {
  for (const std::string folder : {"/ho", "/ro", "/wo", "/Us", "/tm"}) {
    const std::string rest = folder == "/ho"   ? "me/me/x"
                             : folder == "/ro" ? "ot/x"
                             : folder == "/wo" ? "rk/x"
                             : folder == "/Us" ? "ers/me"
                                               : "p/x";
    EXPECT_THAT(check_machine_paths(make_source("a.cpp", "int x;\n// in " + folder + rest)),
                ElementsAre(HasSubstr("a.cpp:2")));
  }
}

TEST(CommentOpenings, AcceptSentencesQuestionsAndLaterLines) {
  EXPECT_THAT(check_comment_openings(
                  make_source("a.cpp",
                              "// The cell, and the words\n// Of which it consists.\n"
                              "int y;\n// Where is the cell?\nint of;  // Of the cell.\n")),
              IsEmpty());
}

TEST(CommentOpenings, RejectFragments) {
  for (const std::string word : {"What", "Of", "How", "Where"})
    EXPECT_THAT(
        check_comment_openings(make_source("a.cpp", "int x;\n  // " + word + " the cell at hand.")),
        ElementsAre(HasSubstr("a.cpp:2")));
}

TEST(TextKeys, AcceptsEnumsAndWhatTestsPrint) {
  EXPECT_THAT(check_text_keys(make_source("report/a.cpp",
                                          "if (phase.phase == Phase::Cast) x;\n"
                                          "engine.compute(Phase::Cast, all, run);\n"
                                          "if (key == \"exchange\") x;")),
              IsEmpty());
  EXPECT_THAT(check_text_keys(make_source("tests/a.cpp", "phase == \"cast\"")), IsEmpty());
}

TEST(TextKeys, RejectsPhasesAndTermsToldApartByText) {
  for (const char* line :
       {"if (phase == \"cast\") x;", "if (step.phase != \"cast\") x;", "term == \"cast sums\"",
        "return term.name == \"cast sums\";", "\"cast\" == phase",
        "engine.compute(\"cast\", all, run);", "engine_.exchange(\"cast\", x);"})
    EXPECT_THAT(check_text_keys(make_source("report/a.cpp", std::string("int x;\n") + line)),
                ElementsAre(HasSubstr("report/a.cpp:2")))
        << line;
}

SourceFile lines_of(const std::string& path, std::size_t count) {
  return {path, std::vector<std::string>(count, "x")};
}

TEST(Length, AcceptsFiveHundredLinesAndLongPages) {
  EXPECT_THAT(check_length({lines_of("a.cpp", 500), lines_of("a.md", 900)}, {}), IsEmpty());
  EXPECT_THAT(check_length({lines_of("a.cpp", 501)}, {{"a.cpp", "a table"}}), IsEmpty());
}

TEST(Length, RejectsOneMoreAndExceptionsNobodyNeeds) {
  EXPECT_THAT(check_length({lines_of("a.cpp", 501)}, {}), ElementsAre(HasSubstr("501 lines")));
  EXPECT_THAT(check_length({lines_of("a.cpp", 500)}, {{"a.cpp", "a table"}}),
              ElementsAre(HasSubstr("without need")));
}

Complaints page_of_base(const std::string& page) {
  return check_page("base",
                    {make_source("base/README.md", page), make_source("base/dims.hpp", "x"),
                     make_source("base/sub/unit.hpp", "x"), make_source("base/internal/i.hpp", "x"),
                     make_source("base/dims.cpp", "x"), make_source("device/machine.hpp", "x")},
                    arrows());
}

TEST(Page, AcceptsOneThatNamesEveryPublicHeader) {
  EXPECT_THAT(page_of_base("| `dims.hpp` | x |\n| `sub/unit.hpp` | y |\n"), IsEmpty());
}

TEST(Page, RejectsAMissingOneAndAMissingName) {
  EXPECT_THAT(check_page("base", {make_source("base/dims.hpp", "x")}, arrows()),
              ElementsAre("base has no README.md"));
  EXPECT_THAT(page_of_base("`dims.hpp`"),
              ElementsAre("base/README.md does not name base/sub/unit.hpp"));
  EXPECT_THAT(page_of_base("`many_dims.hpp` and `unit.hpp`"),
              ElementsAre("base/README.md does not name base/dims.hpp"));
}

}  // namespace
}  // namespace tessera::style
