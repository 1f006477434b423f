#include "tessera/tools/page/report_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tessera/base/file.hpp"
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
           "--batch-size=16", "--json", "--report-tiles",
           R"(--plan-constraints={"useDense": false})", "--html=" + (folder_ / "page.html")});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const std::string page = read_file(folder_ / "page.html");
  json shown = data_of(page);
  EXPECT_FALSE(shown.at("explanation").at("runnersUp").empty());
  std::size_t buckets = 1;
  for (const auto& [axis, parts] : shown.at("planned").at("plan").at("partition").items())
    buckets *= parts.get<std::size_t>();
  EXPECT_EQ(shown.at("tiles").size(), buckets);
  for (const char* extra : {"explanation", "tiles", "date"})
    EXPECT_EQ(shown.erase(extra), 1u) << extra;
  shown.erase("transposed_tiles");
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
    json shown = data_of(page);
    EXPECT_EQ(shown.erase("date"), 1u);
    EXPECT_EQ(shown, json::parse(outcome.out));
    EXPECT_EQ(read_file(folder_ / "out/report.html"), page);
    EXPECT_LT(page.size(), kLargestPage);
  }
}

// The plan of this layer has a layout of its own for GradA.
TEST_F(ReportPage, HasTheBucketsOfBothLayoutsInTheAxesOfTheLayer) {
  const Outcome outcome =
      run({TESSERA_SPARSE_FC_LAYER, "--input-size=96", "--output-size=384", "--density=0.3",
           "--batch-size=64", "--ignore-data", "--quiet",
           R"(--plan-constraints={"useDense": false})", "--html=" + (folder_ / "page.html")});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const json shown = data_of(read_file(folder_ / "page.html"));
  const json& backward = shown.at("planned").at("plan").at("backward");
  ASSERT_EQ(backward.size(), 1u);
  const json& partition = backward[0].at("partition");
  const json& tiles = shown.at("transposed_tiles");
  std::int64_t x = 0, y = 0, values = 0, forward_values = 0;
  for (const json& tile : tiles) {
    x = std::max(x, tile.at("x").get<std::int64_t>() + 1);
    y = std::max(y, tile.at("y").get<std::int64_t>() + 1);
    values += tile.at("values").get<std::int64_t>();
  }
  for (const json& tile : shown.at("tiles"))
    forward_values += tile.at("values").get<std::int64_t>();
  EXPECT_EQ(x, partition.at("y"));
  EXPECT_EQ(y, partition.at("x"));
  EXPECT_EQ(values, forward_values);
  EXPECT_EQ(values, shown.at("buckets").at("blocks"));
}

TEST_F(ReportPage, IsMadeLaterFromASavedReport) {
  const std::string saved = folder_ / "report.json", page = folder_ / "page.html";
  const Outcome made = run({TESSERA_SPARSE_FC_LAYER, "--input-size=64", "--output-size=48",
                            "--density=0.2", "--tiles-per-ipu=8", "--json"});
  ASSERT_EQ(made.exit, 0) << made.err;
  tessera::write_file(saved, made.out);
  const Outcome outcome = run({TESSERA_TOOL, "report", saved, "--html", page});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  json shown = data_of(read_file(page));
  EXPECT_EQ(shown.erase("date"), 1u);
  EXPECT_EQ(shown, json::parse(made.out));
}

TEST_F(ReportPage, OfAFileThatIsNoReportIsRefused) {
  const std::string saved = folder_ / "report.json", page = folder_ / "page.html";
  for (const char* text : {"", "[1]", "{}", R"({"schema_version": 2})", R"({"schema_version": 1})",
                           R"({"schema_version": 1, "passes": 1, "total": {}, "how": {}})"}) {
    tessera::write_file(saved, text);
    const Outcome outcome = run({TESSERA_TOOL, "report", saved, "--html", page});
    EXPECT_EQ(outcome.exit, 3) << text;
    EXPECT_THAT(outcome.err, HasSubstr(saved)) << text;
    EXPECT_FALSE(std::filesystem::exists(page)) << text;
  }
}

TEST_F(ReportPage, NamesThatLookLikeMarksOfTheTemplateStayNames) {
  const json names{{"machine", "/*CHARTS*/"}, {"source", "/*SCRIPT*/ /*STYLE*/"}};
  const std::string page = tools::study_page(names.dump());
  EXPECT_EQ(data_of(page), names);
  EXPECT_LT(page.size(), kLargestPage);
}

// Only the tip of a chart takes HTML, and tipOf escapes what it is given.
TEST(ReportPageSources, MakeNoTagsOfTexts) {
  int tips = 0;
  for (const auto& file : std::filesystem::directory_iterator(TESSERA_SOURCE_DIR "/tools/web")) {
    if (file.path().extension() != ".js") continue;
    const std::string source = read_file(file.path().string());
    for (const char* maker : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write"})
      EXPECT_THAT(source, Not(HasSubstr(maker))) << file.path();
    const bool defines_tips = source.find("const tipOf") != std::string::npos;
    if (!defines_tips) {
      EXPECT_THAT(source, Not(HasSubstr("<br>"))) << file.path();
    }
    const std::string tip = "tooltip: {confine: true, formatter: ", safe = tip + "(p) => tipOf(";
    for (auto at = source.find(tip); at != std::string::npos; at = source.find(tip, at + 1), ++tips)
      EXPECT_EQ(source.substr(at, safe.size()), safe) << file.path();
  }
  EXPECT_GE(tips, 5);
}

TEST_F(ReportPage, ATextThatClosesAScriptEndsNone) {
  json report = {{"source", "a file named </script><!--"}};
  const std::string page = tools::report_page(report.dump(), {});
  EXPECT_EQ(data_of(page), report);
}

}  // namespace
}  // namespace tessera::test
