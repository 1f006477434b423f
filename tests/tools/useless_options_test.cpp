// Options that change nothing for a request are refused, and a mistake is not taken for a result.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "tessera/tests/support/process.hpp"
#include "tessera/tools/page/report_page.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

Outcome command(const std::string& name, const Words& more) {
  Words words{TESSERA_TOOL,       name, "--input-size=48", "--output-size=32", "--density=0.25",
              "--tiles-per-ipu=8"};
  words.insert(words.end(), more.begin(), more.end());
  return run(words);
}

void expect_refused(const Outcome& outcome, const std::string& part) {
  EXPECT_EQ(outcome.exit, 2) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr(part));
  EXPECT_EQ(outcome.out, "");
}

TEST(UselessOptions, OfTheTextOfARunAreRefusedWithoutThatText) {
  for (const char* option : {"--profile", "--report-plan", "--report-total-cycle-counts",
                             "--report-dense-gradw-serial-splits"})
    for (const char* form : {"--json", "--csv", "--quiet"})
      expect_refused(command("run", {option, form}), std::string(option) + ": adds to the text");
  expect_refused(command("run", {"--report-tiles"}), "--report-tiles: adds to the report in JSON");
}

TEST(UselessOptions, OfAdviceAreUnknown) {
  const Outcome outcome = run({TESSERA_TOOL, "advise", "a.smtx", "--block-size=4"});
  expect_refused(outcome, "--block-size");
}

TEST(Mistakes, InTheOptionsOfASweepAreNoPoints) {
  for (const char* options : {R"({"unknown": 1})", R"({"availableMemoryProportion": 7})"}) {
    const Outcome outcome =
        run({TESSERA_TOOL, "sweep", "--over=density=0.1,0.2", "--input-size=48", "--output-size=32",
             "--tiles-per-ipu=8", std::string("--matmul-options=") + options});
    EXPECT_THAT((std::vector<int>{2, 3}), testing::Contains(outcome.exit)) << outcome.out;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(Mistakes, InNamesOfOptionsAreShown) {
  expect_refused(run({TESSERA_TOOL, "run", "--=5"}), "\"--=5\" has no name of an option");
  expect_refused(command("run", {"--inject=tile=1,step=1,bit=1,tile=2"}), "tile is given twice");
}

// Returns the cycles of the dense product that a verdict names.
std::string dense_cycles_in(const std::string& text) {
  std::smatch found;
  return std::regex_search(text, found, std::regex("dense\\s+\\(([0-9,]+[0-9])")) ? found[1].str()
                                                                                  : "none";
}

TEST(Verdicts, OfPlanAndRunNameOneDenseProduct) {
  const Words layer{"--input-size=1024", "--output-size=1024", "--density=0.02",
                    "--batch-size=256",  "--data-type=float",  "--tiles-per-ipu=32",
                    "--single-phase=fwd"};
  Words plan{TESSERA_TOOL, "plan"}, ran{TESSERA_TOOL, "run", "--plan-only"};
  plan.insert(plan.end(), layer.begin(), layer.end());
  ran.insert(ran.end(), layer.begin(), layer.end());
  const Outcome planned = run(plan), compiled = run(ran);
  ASSERT_EQ(planned.exit, 0) << planned.err;
  ASSERT_EQ(compiled.exit, 0) << compiled.err;
  EXPECT_NE(dense_cycles_in(planned.out), "none") << planned.out;
  EXPECT_EQ(dense_cycles_in(planned.out), dense_cycles_in(compiled.out));
}

TEST(Crossover, SaysWhereItsSearchEndedAndNotThatDenseWinsThere) {
  const Outcome outcome =
      run({TESSERA_TOOL, "crossover", "--machine=bow", "--input-size=4096", "--output-size=4096",
           "--batch-size=256", "--single-phase=fwd", "--data-type=float", "--block-size=1"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("at least        0.062"));
  EXPECT_THAT(outcome.out, HasSubstr("larger patterns, of more than 1048576 blocks, were not"));
  EXPECT_THAT(outcome.out, HasSubstr("static up to at least 0.062 (1x1)"));
  const Outcome small = run({TESSERA_TOOL, "crossover", "--input-size=128", "--output-size=96",
                             "--batch-size=16", "--tiles-per-ipu=16", "--single-phase=fwd"});
  EXPECT_THAT(small.out, Not(HasSubstr("at least")));
}

TEST(Pages, HaveTheDateOfSourceDateEpoch) {
  if (!tools::can_make_pages()) GTEST_SKIP() << "built without the chart library";
  const TemporaryFolder folder;
  const auto page = [&](const std::string& epoch) {
    return run({"/usr/bin/env", "SOURCE_DATE_EPOCH=" + epoch, TESSERA_TOOL, "run",
                "--input-size=48", "--output-size=32", "--density=0.25", "--tiles-per-ipu=8",
                "--quiet", "--html", folder / "page.html"});
  };
  EXPECT_EQ(page("86400").exit, 0);
  const std::string first = read_file(folder / "page.html");
  EXPECT_THAT(first, HasSubstr("1970-01-02"));
  EXPECT_EQ(page("86400").exit, 0);
  EXPECT_EQ(read_file(folder / "page.html"), first);
  for (const char* bad : {"yesterday", "-1", "", "999999999999"}) {
    const Outcome outcome = page(bad);
    EXPECT_EQ(outcome.exit, 2) << bad;
    EXPECT_THAT(outcome.err, HasSubstr("SOURCE_DATE_EPOCH"));
  }
}

}  // namespace
}  // namespace tessera::test
