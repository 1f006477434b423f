#include "tessera/bench/published/published.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/bench/published/measured_pattern.hpp"
#include "tessera/bench/published/sensitivity.hpp"

namespace tessera::bench {
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

TEST(Published, KnowsTheTableOfTheRepository) {
  const std::string name = TESSERA_SOURCE_DIR "/tests/data/published_dynamic.tsv";
  const auto read = read_published(read_file(name), name), known = published_points();
  ASSERT_EQ(read.size(), known.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].side, known[i].side) << i;
    EXPECT_EQ(read[i].block, known[i].block) << i;
    EXPECT_EQ(read[i].density, known[i].density) << i;
    EXPECT_EQ(read[i].teraflops, known[i].teraflops) << i;
    EXPECT_EQ(read[i].type, known[i].type) << i;
  }
}

TEST(Published, ReadsTheTypeAndRefusesAnother) {
  const std::string head = "m_eq_k\tblock\tdensity\ttflops\ttype\n64\t16\t1/16\t1\t";
  EXPECT_EQ(read_published(head + "float\n", "p.tsv").front().type, DataType::Float);
  EXPECT_EQ(read_published(head + "half\n", "p.tsv").front().type, DataType::Half);
  EXPECT_THAT(refusal(head + "bfloat16\n"), HasSubstr("type is \"bfloat16\"; it must be half or"));
}

TEST(Published, TakesTheBestBatchOfEachPattern) {
  const auto executor = make_executor(1);
  const Repeated r = repeat({256, {16, 16}, 0.25, 0.1}, small(), *executor);
  ASSERT_EQ(r.runs.size(), 3u);
  ASSERT_TRUE(r.measured);
  for (const RepeatedRun& run : r.runs) {
    const double seconds = double(run.ledger.total().value) / 1.85e9;
    EXPECT_NEAR(run.teraflops, 2.0 * 256 * 256 * double(run.batch) * 0.25 / seconds / 1e12, 1e-9);
  }
  EXPECT_NEAR(r.error(), r.measured->teraflops / 0.1 - 1, 1e-12);
  for (const std::int64_t batch : {16, 64}) {
    Repetition one = small();
    one.batches = {batch};
    const Repeated alone = repeat({256, {16, 16}, 0.25, 0.1}, one, *executor);
    EXPECT_LE(alone.measured->teraflops, r.measured->teraflops);
  }
}

TEST(Published, ChargesTheArrangingAndTheBarriersOfTheMachine) {
  const auto executor = make_executor(1);
  const PublishedPoint point{256, {16, 16}, 0.25, 0.1};
  const double rate = repeat(point, small(), *executor).measured->teraflops;
  Repetition how = small();
  how.machine.sync = Cycles(0);
  EXPECT_GT(repeat(point, how, *executor).measured->teraflops, 1.05 * rate);
  how = small();
  how.machine.arrange_bytes_per_cycle = 1 << 20;
  EXPECT_GT(repeat(point, how, *executor).measured->teraflops, 1.05 * rate);
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

// The small points on the pattern that was measured, as a guard of the machine's constants.
TEST(Published, StaysNearTheHardware) {
  const auto executor = make_executor(1);
  for (const PublishedPoint& point : published_points()) {
    if (point.side > 2048) continue;  // seconds when sanitized
    const Repeated r =
        repeat(point, {device::machine_preset("bow"), {4096, 16384, 65536}}, *executor);
    ASSERT_TRUE(r.fits());
    EXPECT_LT(std::abs(r.error()), 0.08) << point.side;
  }
}

TEST(Sensitivity, RepricesARunAsTheOtherMachineRunsIt) {
  const auto executor = make_executor(1);
  const PublishedPoint point{256, {16, 16}, 0.25, 0.1};
  const Repetition how = small();
  Repetition other = how;
  other.batches = {64};
  other.machine.sync = Cycles(1000);
  other.machine.launch = Cycles(50);
  other.machine.arrange_bytes_per_cycle = 4;
  const Repeated here = repeat(point, how, *executor), there = repeat(point, other, *executor);
  ASSERT_EQ(here.by_batch.size(), 2u);
  EXPECT_NEAR(repriced(here.by_batch.back(), how.machine, other.machine), there.measured->teraflops,
              1e-9);
}

// Rates that a machine with other constants made are explained by these constants alone.
TEST(Sensitivity, FindsTheConstantsOfTheOtherGroups) {
  const auto executor = make_executor(1);
  const Repetition how = small();
  device::Machine truth = how.machine;
  truth.arrange_bytes_per_cycle = 3;
  truth.sync = Cycles(800);
  std::vector<Repeated> points;
  for (const BlockShape block : {BlockShape{16, 16}, BlockShape{8, 8}, BlockShape{4, 4}}) {
    points.push_back(repeat({256, block, 0.25, 1}, how, *executor));
    double best = 0;
    for (const RepeatedRun& run : points.back().by_batch)
      best = std::max(best, repriced(run, how.machine, truth));
    points.back().point.teraflops = best;
  }
  const auto left_out = leave_one_group_out(points, how.machine);
  ASSERT_EQ(left_out.size(), 3u);
  for (const LeftOut& out : left_out) {
    EXPECT_EQ(out.arrange_bytes_per_cycle, 3) << out.group;
    EXPECT_EQ(out.sync, Cycles(800)) << out.group;
    EXPECT_NEAR(out.errors.worst, 0, 1e-9) << out.group;
  }
}

TEST(MeasuredPattern, ShufflesAsTheStandardLibraryBehindTheFiguresDoes) {
#ifndef __GLIBCXX__
  GTEST_SKIP() << "the figures were made with libstdc++";
#endif
  // Below and above the size from which each draw gives one place instead of two.
  for (const std::uint32_t count : {0U, 1U, 2U, 3U, 4U, 255U, 4096U, 46340U, 46341U, 65536U}) {
    std::vector<unsigned> expected(count);
    std::iota(expected.begin(), expected.end(), 0U);
    std::shuffle(expected.begin(), expected.end(), std::default_random_engine(123));
    EXPECT_TRUE(std::ranges::equal(libstdcxx_shuffle(count, 123), expected)) << count;
  }
}

TEST(MeasuredPattern, TakesTheFirstPlacesOfTheShuffle) {
  const sparse::Csr<float> pattern = measured_pattern(64, {4, 4}, 1.0 / 3);
  EXPECT_EQ(pattern.blocks(), 86);  // 256 / 3, rounded up
  const auto places = libstdcxx_shuffle(256, 123);
  std::vector<std::uint32_t> expected(places.begin(), places.begin() + 86), found;
  std::ranges::sort(expected);
  for (std::int64_t row = 0; row < 16; ++row)
    for (auto i = pattern.row_begin[std::size_t(row)]; i < pattern.row_begin[std::size_t(row) + 1];
         ++i)
      found.push_back(std::uint32_t(row * 16 + pattern.col[std::size_t(i)]));
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace tessera::bench
