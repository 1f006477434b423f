#include "tessera/base/random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace tessera {
namespace {

TEST(Random, IsTheGeneratorOfTheStandard) {
  Random random(5489);
  for (int i = 1; i < 10000; ++i) random.bits();
  EXPECT_EQ(random.bits(), 9981545732273789042u) << "the 10000th number the standard promises";
}

// The numbers below were worked out by a second implementation of the generator, in integers.
TEST(Random, GivesTheSameFirstNumbersOnEveryComputer) {
  Random bits(1), unit(1), below(1), sign(1);
  for (const std::uint64_t expected :
       {2469588189546311528u, 2516265689700432462u, 8323445853463659930u, 387828560950575246u})
    EXPECT_EQ(bits.bits(), expected);
  for (const double expected :
       {0x1.122deafddb434p-3, 0x1.175c928118c7cp-3, 0x1.ce0b479deb990p-2, 0x1.5876015e4d700p-6})
    EXPECT_EQ(unit.unit(), expected);
  for (const std::int64_t expected : {133, 136, 451, 21, 350, 911, 470, 74})
    EXPECT_EQ(below.below(1000), expected);
  for (const float expected : {-1.0f, -1.0f, -1.0f, -1.0f, -1.0f, 1.0f, -1.0f, -1.0f})
    EXPECT_EQ(sign.sign(), expected);
}

TEST(Random, DependsOnTheSeed) { EXPECT_NE(Random(1).bits(), Random(2).bits()); }

TEST(Random, UnitStaysBelowOneAndIsCentred) {
  Random random(3);
  double sum = 0;
  constexpr int kCount = 100'000;
  for (int i = 0; i < kCount; ++i) {
    const double u = random.unit();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  // Five standard deviations of the mean: 5 * sqrt(1 / 12 / kCount) = 0.0046.
  EXPECT_NEAR(sum / kCount, 0.5, 0.0046);
}

TEST(Random, BelowStaysInsideEveryBound) {
  Random random(4);
  for (const std::int64_t bound :
       {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{1} << 31,
        std::int64_t{1} << 62, std::numeric_limits<std::int64_t>::max()})
    for (int i = 0; i < 1000; ++i) {
      const std::int64_t value = random.below(bound);
      ASSERT_GE(value, 0) << bound;
      ASSERT_LT(value, bound);
    }
}

TEST(Random, BelowGivesEveryValueItsShare) {
  Random random(5);
  std::array<int, 7> counts{};
  constexpr int kCount = 70'000;
  for (int i = 0; i < kCount; ++i) ++counts[static_cast<std::size_t>(random.below(7))];
  // Five standard deviations of a count: 5 * sqrt(70,000 * 6 / 49) = 463.
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 463);
}

TEST(Random, SignsAreBalanced) {
  Random random(6);
  int sum = 0;
  constexpr int kCount = 100'000;
  for (int i = 0; i < kCount; ++i) {
    const float s = random.sign();
    ASSERT_EQ(std::abs(s), 1.0f);
    sum += static_cast<int>(s);
  }
  EXPECT_LT(std::abs(sum), 1582) << "five standard deviations: 5 * sqrt(kCount)";
}

}  // namespace
}  // namespace tessera
