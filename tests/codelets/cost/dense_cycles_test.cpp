#include "tessera/codelets/cost/dense_cycles.hpp"

#include <gtest/gtest.h>

namespace tessera::codelets {
namespace {

constexpr DenseKernel kHalf{};
constexpr DenseKernel kFloat{.data_type = DataType::Float, .partials_type = DataType::Float};

// PopLibs' estimate of its vertex for 16 units, worked out by hand: 60 rows are 10 for a worker.
TEST(DenseCycles, MatchThePublishedEstimateOfOneGroup) {
  constexpr std::int64_t kHalfWorker = 30 + 7 * 4, kFloatWorker = 46 + 7 * 8 + 2 + 8 * 10;
  EXPECT_EQ(dense_cycles(kHalf, {60, 16, 16}), Cycles(116 + 25 + 64 + 6 * kHalfWorker));
  EXPECT_EQ(dense_cycles(kFloat, {60, 8, 16}), Cycles(73 + 26 + 64 + 6 * kFloatWorker));
}

TEST(DenseCycles, BeginAGroupWithEveryDepthAndEverySixteenColumns) {
  const Cycles one = dense_cycles(kHalf, {60, 16, 16});
  EXPECT_EQ(dense_cycles(kHalf, {60, 1, 1}), one);
  EXPECT_EQ(dense_cycles(kHalf, {60, 16, 17}), dense_cycles(kHalf, {60, 16, 32}));
  EXPECT_GT(dense_cycles(kHalf, {60, 17, 16}), one);
  EXPECT_EQ(dense_cycles(kFloat, {60, 9, 16}), dense_cycles(kFloat, {60, 16, 16}));
}

TEST(DenseCycles, AreNoneWithoutWork) {
  EXPECT_EQ(dense_cycles(kHalf, {0, 16, 16}), Cycles(0));
  EXPECT_EQ(dense_cycles(kHalf, {6, 0, 16}), Cycles(0));
  EXPECT_EQ(dense_cycles(kFloat, {6, 16, 0}), Cycles(0));
}

// 16 units with 4 products each, and 16 with one: the stated peaks of the machine.
TEST(DenseCycles, ApproachThePeakOfTheUnitsForLargeFields) {
  constexpr std::int64_t kField = 1 << 16, kInner = 256, kColumns = 256;
  const auto rate = [&](const DenseKernel& kernel) {
    return double(kField * kInner * kColumns) /
           double(dense_cycles(kernel, {kField, kInner, kColumns}).value);
  };
  EXPECT_NEAR(rate(kHalf), 64, 1);
  EXPECT_NEAR(rate(kFloat), 16, 0.6);
}

}  // namespace
}  // namespace tessera::codelets
