#include "tessera/bench/published/crossings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/bench/published/published_dense.hpp"

namespace tessera::bench {
namespace {

using testing::HasSubstr;

TEST(ErrorSummary, IsOfMagnitudes) {
  const ErrorSummary summary = summary_of(std::vector<double>{-0.3, 0.1, -0.02});
  EXPECT_EQ(summary.median, 0.1);
  EXPECT_EQ(summary.worst, 0.3);
}

TEST(CrossingOf, InterpolatesBetweenTheTwoDensitiesAroundIt) {
  const Crossing crossing = crossing_of({{0.0625, 4}, {0.125, 2}, {0.25, 0.5}, {0.5, 0.25}});
  ASSERT_TRUE(crossing.at);
  EXPECT_NEAR(*crossing.at, 0.125 * std::sqrt(2), 1e-12) << "half way, on logarithmic axes";
  EXPECT_EQ(crossing.above, 0.125);
  EXPECT_EQ(crossing.below, 0.25);
}

TEST(CrossingOf, IsABoundIfSparsePaysEverywhereOrNowhere) {
  const Crossing everywhere = crossing_of({{0.1, 3}, {0.2, 1.5}});
  EXPECT_FALSE(everywhere.at);
  EXPECT_EQ(everywhere.above, 0.2);
  EXPECT_EQ(everywhere.below, 1);
  const Crossing nowhere = crossing_of({{0.1, 0.9}, {0.2, 0.5}});
  EXPECT_FALSE(nowhere.at);
  EXPECT_EQ(nowhere.above, 0);
  EXPECT_EQ(nowhere.below, 0.1);
}

TEST(CrossingPoints, HaveThePublishedRatesOfOneSizeOnly) {
  int published = 0;
  for (const PublishedPoint& p : crossing_points()) {
    EXPECT_EQ(p.side, 4096);
    if (p.teraflops > 0) ++published;
  }
  EXPECT_EQ(published, 12);
}

TEST(SpeedUps, AreTheRateOfNonZerosOverThatOfTheBestDenseBatch) {
  Repetition how{device::machine_preset("bow"), {16, 64}, 0};
  how.machine.tiles = 16;
  const PublishedPoint point{256, {16, 16}, 0.25, 0};
  const auto executor = make_executor(1);
  const auto ratios = speed_ups({point}, how, *executor);
  ASSERT_EQ(ratios.size(), 1u);
  EXPECT_FALSE(ratios[0].published);
  const auto dense =
      plan_points({{DataType::Half, 256, 16, 1}, {DataType::Half, 256, 64, 1}}, how.machine);
  const double best = std::max(dense[0].teraflops, dense[1].teraflops);
  ASSERT_TRUE(ratios[0].ours);
  EXPECT_DOUBLE_EQ(*ratios[0].ours,
                   repeat(point, how, *executor).measured->teraflops / 0.25 / best);
}

TEST(CrossingsText, ComparesCrossingsAndBounds) {
  const std::vector<SpeedUp> ratios{
      {DataType::Half, {16, 16}, 0.125, 2, 2},   {DataType::Half, {16, 16}, 0.25, 0.5, 0.5},
      {DataType::Half, {8, 8}, 0.125, 1.5, 1.4}, {DataType::Half, {8, 8}, 0.25, {}, 0.9},
      {DataType::Half, {1, 1}, 0.125, 0.5, 1.1}, {DataType::Float, {1, 1}, 0.125, 0.5, {}}};
  const std::string text = to_text(ratios, {device::machine_preset("bow"), {16, 64}, 0});
  EXPECT_THAT(text, testing::ContainsRegex("half +16x16 +0.177 +0.177 +\\+0.0 %\n"));
  EXPECT_THAT(text, testing::ContainsRegex("half +8x8 +above 0.125 +0.[0-9]+ +agrees\n"));
  EXPECT_THAT(text, testing::ContainsRegex("half +1x1 +below 0.125 +above 0.125 +disagrees\n"));
  EXPECT_THAT(text, HasSubstr("worst 120.0 % of 5\n"));
}

}  // namespace
}  // namespace tessera::bench
