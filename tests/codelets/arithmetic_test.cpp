#include "tessera/codelets/internal/arithmetic.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace tessera::codelets::internal {
namespace {

TEST(ToFloat, AgreesWithHalfOnAllOfIts65536Values) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const Half half = Half::from_bits(static_cast<std::uint16_t>(bits));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(to_float(half)),
              std::bit_cast<std::uint32_t>(float(half)))
        << "bits " << bits;
  }
}

// The header promises that rounding a sum of halves to float first loses nothing. The test compares
// with the sum in double, which is exact: its 53 bits cover the 40 binary places of all halves and
// a carry.
TEST(Add, RoundsTheExactSumOfTwoHalves) {
  for (std::uint32_t a = 0; a < 0x7c00; a += 37)
    for (std::uint32_t b = 0; b < 0xfc00; b += 129) {
      const Half left = Half::from_bits(static_cast<std::uint16_t>(a));
      const Half right = Half::from_bits(static_cast<std::uint16_t>(b));
      if (!std::isfinite(float(right))) continue;
      const double exact = double(float(left)) + double(float(right));
      const Half sum = add(left, right);
      if (std::isinf(float(sum))) {
        ASSERT_GE(std::abs(exact), 65520.0);
        continue;
      }
      const double error = std::abs(double(float(sum)) - exact);
      for (const int step : {-1, 1}) {
        const auto bits = static_cast<std::uint16_t>(sum.bits + step);
        const float neighbour = float(Half::from_bits(bits));
        if ((sum.bits & 0x7fffu) == 0 || !std::isfinite(neighbour)) continue;
        ASSERT_LE(error, std::abs(double(neighbour) - exact)) << a << " + " << b;
      }
    }
}

TEST(AddProduct, RoundsFloatsOnce) {
  const float a = 1 + 0x1p-12f;  // a * a = 1 + 2^-11 + 2^-24, of which rounding takes the last
  EXPECT_EQ(add_product(-(1 + 0x1p-11f), a, a), 0x1p-24f);
}

TEST(PairedColumn, SwapsNeighboursAndLeavesTheLastOfAnOddNumber) {
  EXPECT_EQ(paired_column(0, 4), 1);
  EXPECT_EQ(paired_column(1, 4), 0);
  EXPECT_EQ(paired_column(3, 4), 2);
  EXPECT_EQ(paired_column(4, 5), 4);
}

TEST(AddPairedProduct, RoundsOnceAndTakesWhatIsBelowTheNormalFloatsForZeros) {
  const BFloat16 one(1.0f), tiny(0x1p-75f);
  EXPECT_EQ(add_paired_product(1.0f, BFloat16(0x1p-12f), BFloat16(0x1p-12f)), 1.0f);
  EXPECT_EQ(add_paired_product(1.0f, BFloat16(0x1.8p-12f), BFloat16(0x1p-12f)), 1 + 0x1p-23f);
  EXPECT_EQ(add_paired_product(0x1p-130f, one, one), 1.0f);
  EXPECT_EQ(add_paired_product(0.0f, BFloat16(0x1p-130f), BFloat16(0x1p30f)), 0.0f);
  EXPECT_EQ(add_paired_product(0.0f, tiny, tiny), 0.0f);
  EXPECT_EQ(add_paired_product(0x1.8p-126f, BFloat16(-0x1p-63f), BFloat16(0x1p-63f)), 0.0f);
  EXPECT_TRUE(
      std::signbit(add_paired_product(-0x1.8p-126f, BFloat16(0x1p-63f), BFloat16(0x1p-63f))));
}

// A float of 24 digits without a bound on its exponent would round to 2^-126 from up to a half of
// 2^-150 below it; the denormal floats would also round at 2^-150.
TEST(AddPairedProduct, DecidesWhatIsNormalAfterRoundingWithoutABoundOnTheExponent) {
  const float smallest = 0x1p-126f;
  const BFloat16 b(0x1p-75f);
  EXPECT_EQ(add_paired_product(smallest, BFloat16(-0x1p-76f), b), smallest);
  EXPECT_EQ(add_paired_product(smallest, BFloat16(-0x1.2p-76f), b), 0.0f);
  EXPECT_EQ(std::fma(-0x1.2p-76f, 0x1p-75f, smallest), smallest) << "what is not done";
}

TEST(Dot, AddsSixteenLanesInAFixedOrder) {
  // Column 16 joins column 0 in lane 0: the 1 of 2^24 + 1 is lost there, and 1 + 1 in lane 1 is
  // exact.
  std::array<float, 18> a{}, ones{};
  ones.fill(1);
  a[0] = 0x1p24f;
  a[16] = 1;
  EXPECT_EQ((dot<float>(a.data(), ones.data(), 18)), 0x1p24f);
  a[16] = 0;
  a[1] = a[17] = 1;
  EXPECT_EQ((dot<float>(a.data(), ones.data(), 18)), 0x1p24f + 2);
}

TEST(Dot, AddsTheUpperHalfOfTheLanesToTheLower) {
  // Lane 9 meets lane 1 before either meets lane 0, so 1 + 1 is exact.
  std::array<float, 16> a{}, ones{};
  ones.fill(1);
  a[0] = 0x1p24f;
  a[1] = a[9] = 1;
  EXPECT_EQ((dot<float>(a.data(), ones.data(), 16)), 0x1p24f + 2);
  // Lane 8 meets lane 0 first and is lost in its rounding.
  a[9] = 0;
  a[8] = 1;
  EXPECT_EQ((dot<float>(a.data(), ones.data(), 16)), 0x1p24f);
}

TEST(OneColumnSum, AddsSixteenLanesAndNeverGivesMinusZero) {
  std::array<float, 18> values{}, ones{};
  ones.fill(1);
  values[0] = 0x1p24f;
  values[1] = values[17] = 1;  // meet in lane 1 before they meet lane 0
  const auto at = [&](std::int64_t i) { return ones[std::size_t(i)]; };
  EXPECT_EQ((one_column_sum<float>(values.data(), 18, at)), 0x1p24f + 2);
  const std::array<float, 16> tiny = [] {
    std::array<float, 16> all{};
    all.fill(-0x1p-149f);
    return all;
  }();
  const auto half = [](std::int64_t) { return 0x1p-149f; };
  EXPECT_FALSE(std::signbit(one_column_sum<float>(tiny.data(), 16, half)));
}

TEST(Dot, OfNoColumnsIsZero) {
  const float nothing = 3;
  EXPECT_EQ((dot<float>(&nothing, &nothing, 0)), 0.0f);
}

}  // namespace
}  // namespace tessera::codelets::internal
