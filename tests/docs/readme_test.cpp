#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tessera/tests/support/process.hpp"

namespace tessera::inline v0::test {
namespace {

const std::string kRoot = TESSERA_SOURCE_DIR;

// The text of the fenced blocks of one language, in order.
std::vector<std::string> blocks(const std::string& page, const std::string& language) {
  std::vector<std::string> found;
  const std::string open = "```" + language + "\n";
  for (std::size_t at = page.find(open); at != std::string::npos; at = page.find(open, at)) {
    at += open.size();
    const std::size_t end = page.find("```", at);
    found.push_back(page.substr(at, end - at));
    at = end;
  }
  return found;
}

// "$ command" and the lines it prints, as a page quotes them.
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
  const auto commands = quoted_commands(read_file(kRoot + "/" + page_path));
  EXPECT_FALSE(commands.empty()) << page_path << " quotes no command";
  for (const Quoted& quoted : commands) {
    const Outcome outcome = run_quoted(quoted.command);
    EXPECT_EQ(outcome.exit, 0) << quoted.command << "\n" << outcome.err;
    EXPECT_EQ(quoted.output, outcome.out) << page_path << ": " << quoted.command;
  }
}

// In the order of the page.
struct Example {
  const char *source, *program;
};
constexpr Example kExamples[] = {{"first_layer.cpp", TESSERA_FIRST_LAYER},
                                 {"training_step.cpp", TESSERA_TRAINING_STEP}};

TEST(Readme, ShowsTheExampleProgramsAsTheyAre) {
  const auto programs = blocks(read_file(kRoot + "/README.md"), "cpp");
  ASSERT_EQ(programs.size(), std::size(kExamples));
  for (std::size_t i = 0; i < programs.size(); ++i)
    EXPECT_EQ(programs[i], read_file(kRoot + "/examples/" + kExamples[i].source));
}

TEST(Readme, ShowsWhatTheExamplesPrint) {
  const auto outputs = blocks(read_file(kRoot + "/README.md"), "text");
  ASSERT_EQ(outputs.size(), std::size(kExamples));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Outcome outcome = run({kExamples[i].program});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_EQ(outputs[i], outcome.out);
  }
}

TEST(Readme, QuotesTrueOutput) { expect_true_output("README.md"); }

TEST(ToolsPage, QuotesTrueOutput) { expect_true_output("tools/README.md"); }

TEST(Guide, QuotesTrueOutput) { expect_true_output("docs/guide.md"); }

std::string without_commas(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  return text;
}

// Rows "| outputs x inputs x batch | block | density | planned | ran | dense |" of the table.
TEST(Readme, TheTableHoldsWhatTheToolSays) {
  const std::string page = read_file(kRoot + "/README.md");
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
    ASSERT_TRUE(std::regex_search(outcome.out, dense, std::regex(R"(dense at peak: ([0-9,]+))")));
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
}  // namespace tessera::inline v0::test
