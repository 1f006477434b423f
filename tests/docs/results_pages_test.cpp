#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tessera/tests/docs/page.hpp"
#include "tessera/tests/support/results_table.hpp"

namespace tessera::test {
namespace {

// Returns the names of the files of bench/results/ that end so.
std::vector<std::string> results_with_ending(const std::string& ending) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(TESSERA_SOURCE_DIR "/bench/results"))
    if (entry.path().extension() == ending) found.push_back(entry.path().filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

std::ptrdiff_t words(const std::string& text) {
  std::istringstream in(text);
  return std::distance(std::istream_iterator<std::string>(in), {});
}

// Returns the comments with which a table begins, each with its end of line.
std::string first_comments(const std::string& table) {
  std::string comments;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line) && line.starts_with('#');)
    comments += line + "\n";
  return comments;
}

TEST(ResultsPages, StayShort) {
  for (const std::string& name : results_with_ending(".md"))
    EXPECT_LE(words(results_table(name)), name == "README.md" ? 800 : 400) << name;
}

TEST(ResultsPages, NameEveryTable) {
  std::string pages;
  for (const std::string& name : results_with_ending(".md")) pages += results_table(name);
  for (const std::string& name : results_with_ending(".tsv"))
    EXPECT_NE(pages.find(name), std::string::npos) << name;
}

TEST(ResultsPages, AreNamedByTheFirstPage) {
  const std::string first = results_table("README.md");
  for (const std::string& name : results_with_ending(".md"))
    if (name != "README.md") {
      EXPECT_NE(first.find("(" + name + ")"), std::string::npos) << name;
    }
}

TEST(ResultsTables, SayWhenAndHowTheyWereMade) {
  const std::regex date(R"(\b20\d\d-\d\d-\d\d\b)"), command("\n# (command|made by): .+\n");
  const auto tables = results_with_ending(".tsv");
  EXPECT_GT(tables.size(), 30u);
  for (const std::string& name : tables) {
    const std::string comments = "\n" + first_comments(results_table(name));
    EXPECT_TRUE(std::regex_search(comments, date)) << name << " has no date";
    EXPECT_TRUE(std::regex_search(comments, command)) << name << " names no command";
  }
}

// The first page shows the whole table of products, in another order of columns.
TEST(ResultsPages, TheFirstOneShowsTheMeasuredProducts) {
  const auto shown = table_rows(results_table("README.md"), "outputs x inputs x batch");
  const std::string table = results_table("user_cases.tsv");
  EXPECT_EQ(shown.size(), 10u);
  for (const auto& row : shown) {
    const std::string shape = std::regex_replace(row.at(0), std::regex(" x "), "\t");
    std::string line = "\n" + shape + "\t" + row.at(2) + "\t" + row.at(3) + "\t" + row.at(1);
    for (std::size_t i = 4; i < row.size(); ++i) line += "\t" + row[i];
    line.erase(line.find_last_not_of('\t') + 1);
    EXPECT_NE(table.find(line), std::string::npos) << line;
  }
}

TEST(ResultsTables, AreMadeOfAlignedColumns) {
  EXPECT_EQ(
      as_tsv(" m=k blk   error\n\n 4096  16   -0.9 %  27 1*2\nwhat, of 9   0.82  <=  0.87  ok\n"
             "arrange operands     11398\nerror: median 0.9 % of 17 points\n"),
      "# m=k blk   error\n4096\t16\t-0.9%\t27\t1*2\nwhat, of 9\t0.82\t<=\t0.87\tok\n"
      "arrange operands\t11398\n# error: median 0.9% of 17 points\n");
}

}  // namespace
}  // namespace tessera::test
