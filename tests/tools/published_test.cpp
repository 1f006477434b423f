#include "tessera/tools/published/published.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "tessera/base/error.hpp"

namespace tessera::tools {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    read_published(text, "p.tsv");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadInput);
    return error.what();
  }
  return "";
}

TEST(Published, ReadsATableWithCommentsFractionsAndColumnsInAnyOrder) {
  const auto points = read_published(
      "# a plot\n# another\ntflops\tm_eq_k\tnote\tdensity\tblock\n2.5\t512\thi\t1/16\t16\n"
      "3\t64\t\t0.5\t1\n",
      "p.tsv");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].side, 512);
  EXPECT_EQ(points[0].block, (BlockShape{16, 16}));
  EXPECT_EQ(points[0].density, 1.0 / 16);
  EXPECT_EQ(points[0].teraflops, 2.5);
  EXPECT_EQ(points[1].block, (BlockShape{1, 1}));
}

TEST(Published, RefusesABadRowByPlaceColumnValueAndRange) {
  const std::string head = "# a plot\nm_eq_k\tblock\tdensity\ttflops\n";
  EXPECT_THAT(refusal(head + "0\t16\t1/16\t1\n"), HasSubstr("p.tsv:3: m_eq_k is \"0\""));
  EXPECT_THAT(refusal(head + "64\t5\t1/16\t1\n"), HasSubstr("block is \"5\"; it must be a div"));
  EXPECT_THAT(refusal(head + "64\t16\t1/0\t1\n"), HasSubstr("density is \"1/0\""));
  EXPECT_THAT(refusal(head + "64\t16\t2/1\t1\n"), HasSubstr("density is \"2/1\""));
  EXPECT_THAT(refusal(head + "64\t16\t0\t1\n"), HasSubstr("density is \"0\"; it must be above 0"));
  EXPECT_THAT(refusal(head + "64\t16\t1\t-1\n"), HasSubstr("tflops is \"-1\""));
  EXPECT_THAT(refusal("# only\n"), HasSubstr("p.tsv:2: the header line is missing"));
  EXPECT_THAT(refusal("m_eq_k\tblock\tdensity\n"), HasSubstr("column tflops is missing"));
}

Repetition small() {
  Repetition how{device::machine_preset("bow"), {16, 64}, 3};
  how.machine.tiles = 16;
  return how;
}

TEST(Published, TakesTheBestBatchOfEachPatternAndTheMeanOfPatterns) {
  const auto executor = make_executor(1);
  const Repeated r = repeat({256, {16, 16}, 0.25, 0.1}, small(), *executor);
  ASSERT_EQ(r.runs.size(), 3u);
  double sum = 0;
  for (const RepeatedRun& run : r.runs) {
    sum += run.teraflops;
    const double seconds = double(run.ledger.total().value) / 1.85e9;
    EXPECT_NEAR(run.teraflops, 2.0 * 256 * 256 * double(run.batch) * 0.25 / seconds / 1e12, 1e-9);
  }
  EXPECT_NEAR(r.mean_teraflops(), sum / 3, 1e-12);
  EXPECT_NEAR(r.error(), sum / 3 / 0.1 - 1, 1e-12);
  for (const std::int64_t batch : {16, 64}) {
    Repetition one = small();
    one.batches = {batch};
    const Repeated alone = repeat({256, {16, 16}, 0.25, 0.1}, one, *executor);
    EXPECT_LE(alone.runs.front().teraflops, r.runs.front().teraflops);
  }
}

TEST(Published, ChargesTheBeginningOfReceivingAndTheBarriersOfTheMachine) {
  const auto executor = make_executor(1);
  Repetition free = small();
  free.machine.receive_start = free.machine.sync = Cycles(0);
  const PublishedPoint point{256, {16, 16}, 0.25, 0.1};
  EXPECT_GT(repeat(point, free, *executor).mean_teraflops(),
            1.1 * repeat(point, small(), *executor).mean_teraflops());
}

TEST(Published, SaysWhereNothingFits) {
  const auto executor = make_executor(1);
  Repetition how = small();
  how.machine.tile_memory = Bytes(2048);
  const Repeated r = repeat({1024, {16, 16}, 0.25, 0.1}, how, *executor);
  EXPECT_FALSE(r.fits());
  EXPECT_THAT(to_text({r}, how), HasSubstr("no plan fits at any batch"));
  EXPECT_THAT(to_text({r}, how), HasSubstr("worst 100.0 %"));
}

TEST(Published, PrintsLinesOfAHundredColumnsAndATableOfCells) {
  const auto executor = make_executor(1);
  const Repeated r = repeat({256, {1, 1}, 1.0 / 16, 0.1}, small(), *executor);
  std::istringstream lines(to_text({r}, small()));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  std::istringstream table(to_table({r}));
  std::string head, row;
  std::getline(table, head);
  std::getline(table, row);
  EXPECT_EQ(std::count(head.begin(), head.end(), '\t'), std::count(row.begin(), row.end(), '\t'));
}

// The seven points on one pattern each, as a guard of the machine's constants; the tool's own
// default takes more patterns.
TEST(Published, StaysNearTheHardwareOnPatternsThatDoNotSpill) {
  const auto executor = make_executor(1);
  for (const PublishedPoint& point : published_points()) {
    if (point.side > 2048) continue;  // seconds when sanitized
    const Repeated r = repeat(point, {device::machine_preset("bow"), {4096, 16384}, 5}, *executor);
    ASSERT_TRUE(r.fits());
    EXPECT_LT(std::abs(r.runs.back().teraflops / point.teraflops - 1), 0.15) << point.side;
  }
}

}  // namespace
}  // namespace tessera::tools
