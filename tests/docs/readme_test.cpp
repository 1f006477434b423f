#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tessera/tests/docs/page.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

const std::string kRoot = TESSERA_SOURCE_DIR;

// "$ command" and the lines that it prints, as a page quotes them.
struct Quoted {
  std::string command, output;
};
std::vector<Quoted> quoted_commands(const std::string& page) {
  std::vector<Quoted> found;
  for (const std::string& block : blocks(page, "console")) {
    std::istringstream lines(block);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("$ ", 0) == 0)
        found.push_back({line.substr(2), ""});
      else if (!found.empty())
        found.back().output += line + "\n";
    }
  }
  return found;
}

// Runs a quoted command at the root of the source tree, with the built tools on the path.
Outcome run_quoted(const std::string& command) {
  return run({"/bin/sh", "-c", "PATH=\"$1:$PATH\" && " + command, "sh", TESSERA_TOOLS_DIR}, {},
             kRoot);
}

void expect_true_output(const std::string& page_path) {
  for (const Quoted& quoted : quoted_commands(page_text(page_path))) {
    const Outcome outcome = run_quoted(quoted.command);
    EXPECT_EQ(outcome.exit, 0) << quoted.command << "\n" << outcome.err;
    EXPECT_EQ(quoted.output, outcome.out) << page_path << ": " << quoted.command;
  }
}

// The example programs in the order of the page.
struct Example {
  const char *source, *program;
};
constexpr Example kExamples[] = {{"host_layer.cpp", TESSERA_HOST_LAYER},
                                 {"first_layer.cpp", TESSERA_FIRST_LAYER},
                                 {"training_step.cpp", TESSERA_TRAINING_STEP}};

TEST(StartPage, ShowsTheExampleProgramsAsTheyAre) {
  const auto programs = blocks(page_text("docs/start.md"), "cpp");
  ASSERT_EQ(programs.size(), std::size(kExamples));
  for (std::size_t i = 0; i < programs.size(); ++i)
    EXPECT_EQ(programs[i], page_text(std::string("examples/") + kExamples[i].source));
}

TEST(StartPage, ShowsWhatTheExamplesPrint) {
  const auto outputs = blocks(page_text("docs/start.md"), "text");
  ASSERT_EQ(outputs.size(), std::size(kExamples));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Outcome outcome = run({kExamples[i].program});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_EQ(outputs[i], outcome.out);
  }
}

// Returns the lines of a text without the spaces around them.
std::vector<std::string> trimmed_lines(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(' '), end = line.find_last_not_of(' ');
    found.push_back(begin == std::string::npos ? "" : line.substr(begin, end - begin + 1));
  }
  return found;
}

// The page shows the lines that matter; the example has them in the same order.
TEST(Readme, ShowsLinesOfTheFirstExample) {
  const auto programs = blocks(page_text("README.md"), "cpp");
  ASSERT_EQ(programs.size(), 1u);
  const auto example = trimmed_lines(page_text("examples/host_layer.cpp"));
  auto from = example.begin();
  for (const std::string& line : trimmed_lines(programs[0])) {
    const auto at = std::find(from, example.end(), line);
    ASSERT_NE(at, example.end()) << "examples/host_layer.cpp has no more line: " << line;
    from = at + 1;
  }
}

// Returns the rows of a table of tab-separated values, without comments and the line of names.
std::vector<std::vector<std::string>> tsv_rows(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  bool heading = true;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::vector<std::string> cells;
    std::istringstream rest(line);
    for (std::string cell; std::getline(rest, cell, '\t');) cells.push_back(cell);
    if (!heading) rows.push_back(cells);
    heading = false;
  }
  return rows;
}

TEST(Readme, NamesEveryFolderThatIsBuilt) {
  const std::string page = page_text("README.md");
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot))
    if (std::filesystem::exists(entry.path() / "CMakeLists.txt")) {
      const std::string name = "`" + entry.path().filename().string() + "/`";
      if (name == "`build/`") continue;
      EXPECT_NE(page.find(name), std::string::npos) << name;
      ++folders;
    }
  EXPECT_GT(folders, 15);
}

TEST(Readme, IsShort) {
  std::istringstream in(page_text("README.md"));
  EXPECT_LE(std::distance(std::istream_iterator<std::string>(in), {}), 900);
}

// Columns of user_cases.tsv: outputs, inputs, batch, density, block, pass, our ms, dense ms, ratio.
TEST(Readme, HasTheMeasuredTimesOfTheResults) {
  std::vector<std::vector<std::string>> measured;
  for (const auto& row : tsv_rows(page_text("bench/results/user_cases.tsv")))
    if (row.at(5) == "Fwd")
      measured.push_back({row[0] + " x " + row[1] + " x " + row[2], row[3], row[4], row.at(6),
                          row.at(7), row.at(8)});
  const auto shown = table_rows(page_text("README.md"), "outputs x inputs x batch");
  EXPECT_GE(shown.size(), 4u);
  for (const auto& row : shown)
    EXPECT_NE(std::find(measured.begin(), measured.end(), row), measured.end())
        << "bench/results/user_cases.tsv has other figures than README.md for " << row[0];
}

// Columns of masked_training.tsv: layers, epochs, seed, seconds, accuracy in per cent.
TEST(Readme, HasTheTrainingBesideMasksOfTheResults) {
  const std::string page = page_text("README.md");
  const auto measured = tsv_rows(page_text("bench/results/masked_training.tsv"));
  ASSERT_EQ(measured.size(), 3u);
  for (const auto& row : measured) {
    EXPECT_NE(page.find(" " + row.at(3) + " s"), std::string::npos) << row[0];
    EXPECT_NE(page.find(row.at(4) + " %"), std::string::npos) << row[0];
  }
}

// Returns the output of the demo without what differs from computer to computer: figures with the
// blanks before them and names of the first part, which ends with a blank line, are left out.
std::string demo_without_times(const std::string& output) {
  const std::size_t end = output.find("\n\n");
  const std::regex measured(R"( *[0-9][0-9.,]*|\(.*\))");
  return std::regex_replace(output.substr(0, end), measured, "#") +
         output.substr(std::min(end, output.size()));
}

TEST(StartPage, ShowsWhatTheDemoPrints) {
  const auto shown = blocks(page_text("docs/start.md"), "demo");
  ASSERT_EQ(shown.size(), 1u);
  const Outcome outcome = run({TESSERA_DEMO, kRoot + "/data/face_conv2d_24.mtx"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(demo_without_times(shown[0]), demo_without_times(outcome.out));
}

class Page : public testing::TestWithParam<std::string> {};

TEST_P(Page, QuotesTrueOutput) { expect_true_output(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Every, Page, testing::ValuesIn(pages()), [](const auto& page) {
  std::string name = page.param.substr(0, page.param.rfind('.'));
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

TEST(Pages, AreThoseOfTheTree) {
  const auto found = pages();
  for (const char* page : {"README.md", "docs/tools.md", "docs/guide.md", "docs/cost-model.md"})
    EXPECT_TRUE(std::find(found.begin(), found.end(), page) != found.end()) << page;
}

TEST(Pages, AreReachedFromTheGuideOrTheReadme) {
  const std::string entries = page_text("README.md") + page_text("docs/guide.md");
  for (const std::string& page : pages()) {
    const std::string name = page.substr(page.rfind('/') + 1);
    EXPECT_NE(entries.find(name), std::string::npos) << page;
  }
}

TEST(Validation, QuotesThePublishedTable) {
  const std::string results = page_text("bench/results/published.tsv");
  const auto rows = table_rows(page_text("docs/validation.md"), "m = k");
  EXPECT_EQ(rows.size(), 17u);
  for (const auto& row : rows) {
    std::string line = "\n";
    for (const std::string& cell : row)
      line += std::regex_replace(cell, std::regex(" "), "") + "\t";
    EXPECT_NE(results.find(line), std::string::npos) << line;
  }
}

TEST(Validation, QuotesThePlannersRatios) {
  const std::string page = page_text("docs/validation.md");
  const std::string results = page_text("bench/results/planner_bars.tsv");
  for (const std::string of : {"worst", "mean"}) {
    std::smatch ratio;
    ASSERT_TRUE(std::regex_search(
        results, ratio,
        std::regex("uniform, 10 patterns: simulated cycles / PopLibs' partition, " + of +
                   "\t([0-9.]+)")));
    EXPECT_NE(page.find(" " + ratio[1].str() + " "), std::string::npos) << of << " " << ratio[1];
  }
}

// Links have the form "[text](path)" and lead to files of the tree.
TEST(Pages, LinkToWhatIsThere) {
  const std::regex link(R"(\]\(([^)#:]+)(#[^)]*)?\))");
  int links = 0;
  for (const std::string& page : pages()) {
    const std::string text = page_text(page);
    const auto folder = std::filesystem::path(kRoot + "/" + page).parent_path();
    for (auto it = std::sregex_iterator(text.begin(), text.end(), link);
         it != std::sregex_iterator(); ++it, ++links)
      EXPECT_TRUE(std::filesystem::exists(folder / (*it)[1].str()))
          << page << " links to " << (*it)[1];
  }
  EXPECT_GT(links, 10);
}

std::string without_commas(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  return text;
}

// The rows of the table have the form "| outputs x inputs x batch | block | density | planned | ran
// | dense |".
TEST(StartPage, TheTableHoldsWhatTheToolSays) {
  const std::string page = page_text("docs/start.md");
  const std::regex row(
      R"(\n\| (\d+) x (\d+) x (\d+) \| (\d+) \| ([0-9.]+) \| ([0-9,]+) \| ([0-9,]+) \| ([0-9,]+) \|)");
  int rows = 0;
  for (auto it = std::sregex_iterator(page.begin(), page.end(), row); it != std::sregex_iterator();
       ++it, ++rows) {
    const auto cell = [&](int i) { return (*it)[std::size_t(i)].str(); };
    const Outcome outcome = run_quoted(
        "sparse_fc_layer --single-phase fwd --output-size " + cell(1) + " --input-size " + cell(2) +
        " --batch-size " + cell(3) + " --block-size " + cell(4) + " --density " + cell(5));
    ASSERT_EQ(outcome.exit, 0) << outcome.err;
    std::smatch total, dense;
    ASSERT_TRUE(
        std::regex_search(outcome.out, total, std::regex(R"( total +\d+ +([0-9,]+) +([0-9,]+))")));
    ASSERT_TRUE(std::regex_search(outcome.out, dense, std::regex(R"(dense \(([0-9,]+), )")));
    EXPECT_EQ(without_commas(cell(6)), without_commas(total[2])) << "planned, row " << rows;
    EXPECT_EQ(without_commas(cell(7)), without_commas(total[1])) << "ran, row " << rows;
    EXPECT_EQ(without_commas(cell(8)), without_commas(dense[1])) << "dense, row " << rows;
  }
  EXPECT_EQ(rows, 3);
}

TEST(Run, StartsInAnyFolder) {
  const TemporaryFolder folder;
  const std::string quaint = folder / "it's \"here\" $now";
  std::filesystem::create_directory(quaint);
  const Outcome outcome = run({"/bin/sh", "-c", "pwd -P"}, {}, quaint);
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.out, std::filesystem::canonical(quaint).string() + "\n");
}

TEST(Pages, TheCheckSeesAFalseQuotation) {
  const auto quoted = quoted_commands("```console\n$ echo one\ntwo\n```\n");
  ASSERT_EQ(quoted.size(), 1u);
  EXPECT_NE(quoted[0].output, run_quoted(quoted[0].command).out);
}

}  // namespace
}  // namespace tessera::test
