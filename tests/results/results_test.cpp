// Modelled figures are the same on every computer, so the tables in bench/results/ must match the
// code. Each test repeats some rows of a table; `./dev results` makes the tables again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tessera/bench/layer/grid_cases.hpp"
#include "tessera/bench/planner/quality.hpp"
#include "tessera/bench/planner/training.hpp"
#include "tessera/bench/published/published.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/tests/support/results_table.hpp"

namespace tessera {
namespace {

// Expects every row of `text` that begins with one of `beginnings` in the table, and as many such
// rows as there are beginnings, so that the test cannot pass without looking at a row.
void expect_rows(const std::string& text, const std::vector<std::string>& beginnings,
                 const std::string& name) {
  const std::string all = test::results_table(name);
  std::size_t found = 0;
  std::istringstream lines(test::as_tsv(text));
  for (std::string line; std::getline(lines, line);)
    for (const std::string& beginning : beginnings)
      if (line.starts_with(beginning)) {
        ++found;
        EXPECT_THAT(all, testing::HasSubstr("\n" + line + "\n"))
            << "bench/results/" << name << " has another row; run ./dev results";
      }
  EXPECT_EQ(found, beginnings.size());
}

TEST(Results, OfPublishedRunsAreThoseOfTheModel) {
  std::vector<bench::PublishedPoint> points = bench::published_points();
  std::erase_if(points, [](const auto& p) { return p.side > 2048; });
  const bench::Repetition how{device::machine_preset("bow"),
                              {4, 16, 64, 256, 1024, 4096, 16384, 65536}};
  const auto executor = make_executor();
  std::vector<bench::Repeated> repeated;
  for (const auto& point : points) repeated.push_back(bench::repeat(point, how, *executor));
  expect_rows(to_text(repeated, how), {"2048\t16\t", "512\t16\t"}, "published.tsv");
}

TEST(Results, OfThePlannersQualityAreThoseOfTheEngine) {
  const auto executor = make_executor();
  const std::vector<std::string> rows = {"g0834", "p2567"};
  expect_rows(
      to_text(bench::compare_uniform({.rows = rows, .patterns = 10}, *executor), /*verbose=*/false),
      rows, "planner_quality.tsv");
}

TEST(Results, OfTrainingLayersAreThoseOfTheEngine) {
  const auto executor = make_executor();
  expect_rows(to_text(bench::run_training_layers(/*seed=*/1, /*count=*/2, *executor)),
              {"t00", "t01"}, "planner_training.tsv");
}

// Twelve shards of a quarter of an hour each have room for 3,000 cases.
TEST(Results, OfTheGridAreOfCasesThatOneNightHasRoomFor) {
  const std::filesystem::path source = TESSERA_SOURCE_DIR;
  const std::vector<bench::GridCase> cases =
      bench::read_grid(source / "bench/layer/grid.tsv", source / "no folder of matrices");
  std::set<std::string> groups, names;
  for (const bench::GridCase& c : cases) {
    groups.insert(c.group);
    EXPECT_TRUE(names.insert(c.group + c.name()).second) << c.name() << " is listed twice";
  }
  EXPECT_GT(cases.size(), 1000);
  EXPECT_LE(cases.size(), 3000);
  EXPECT_THAT(groups, testing::UnorderedElementsAre("elements", "gradient of inputs",
                                                    "gradient of weights", "batch first", "blocks",
                                                    "gradients of blocks", "16 bits"));
}

}  // namespace
}  // namespace tessera
