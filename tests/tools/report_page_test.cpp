#include "tessera/tools/report_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr std::size_t kLargestPage = 2'000'000;

// The JSON that a page shows.
json data_of(const std::string& page) {
  const std::string open = R"(<script type="application/json" id="report">)";
  const std::size_t begin = page.find(open) + open.size();
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

class ReportPage : public testing::Test {
 protected:
  void SetUp() override {
    if (!tools::can_make_pages()) GTEST_SKIP() << "built without npm: there are no pages";
  }
  TemporaryFolder folder_;
};

TEST_F(ReportPage, HoldsWhatJsonSaysAndTheReasonsOfThePlan) {
  const Outcome outcome =
      run({TESSERA_SPARSE_FC_LAYER, "--input-size=1024", "--output-size=1024", "--density=0.05",
           "--batch-size=16", "--json", "--report-tiles", "--html=" + (folder_ / "page.html")});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const std::string page = read_file(folder_ / "page.html");
  json shown = data_of(page);
  EXPECT_FALSE(shown.at("explanation").at("runnersUp").empty());
  std::size_t buckets = 1;
  for (const auto& [axis, parts] : shown.at("planned").at("plan").at("partition").items())
    buckets *= parts.get<std::size_t>();
  EXPECT_EQ(shown.at("tiles").size(), buckets);
  shown.erase("explanation");
  shown.erase("tiles");
  EXPECT_EQ(shown, json::parse(outcome.out));
  EXPECT_LT(page.size(), kLargestPage);
  EXPECT_THAT(page, Not(HasSubstr("<script src")));
}

TEST_F(ReportPage, OfThisComputerHoldsWhatJsonSays) {
  const std::vector<std::string> words{"--machine=host",
                                       "--input-size=96",
                                       "--output-size=64",
                                       "--density=0.2",
                                       "--self-check",
                                       "--json",
                                       "--html=" + (folder_ / "page.html"),
                                       "--output-dir=" + (folder_ / "out")};
  for (const std::vector<std::string>& program :
       {std::vector<std::string>{TESSERA_SPARSE_FC_LAYER}, {TESSERA_TOOL, "run"}}) {
    std::vector<std::string> command = program;
    command.insert(command.end(), words.begin(), words.end());
    const Outcome outcome = run(command);
    ASSERT_EQ(outcome.exit, 0) << outcome.err;
    const std::string page = read_file(folder_ / "page.html");
    EXPECT_EQ(data_of(page), json::parse(outcome.out));
    EXPECT_EQ(read_file(folder_ / "out/report.html"), page);
    EXPECT_LT(page.size(), kLargestPage);
  }
}

TEST_F(ReportPage, NamesThatLookLikeMarksOfTheTemplateStayNames) {
  const json names{{"machine", "/*CHARTS*/"}, {"source", "/*SCRIPT*/ /*STYLE*/"}};
  const std::string page = tools::study_page(names.dump());
  EXPECT_EQ(data_of(page), names);
  EXPECT_LT(page.size(), kLargestPage);
}

TEST_F(ReportPage, ATextThatClosesAScriptEndsNone) {
  json report = {{"source", "a file named </script><!--"}};
  const std::string page = tools::report_page(report.dump(), {});
  EXPECT_EQ(data_of(page), report);
}

}  // namespace
}  // namespace tessera::test
