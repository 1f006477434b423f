#include "tessera/base/half.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tessera/base/random.hpp"

namespace tessera {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::uint16_t kHalfInfinity = 0x7c00;

// The value of a half that is no NaN, written from the format's definition and exact in double;
// infinity counts as 2^16, the number that rounding would reach next.
double defined_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Nearest half of a float that is no NaN, found by bisection over all halves and a comparison of
// the two neighbours. Slow, and shares nothing with the conversion under test.
std::uint16_t nearest_half(float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(double{value});
  if (magnitude >= defined_value(kHalfInfinity)) return sign | kHalfInfinity;
  std::uint16_t low = 0, high = kHalfInfinity;
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (defined_value(middle) <= magnitude ? low : high) = middle;
  }
  const double above_low = magnitude - defined_value(low);
  const double below_high = defined_value(high) - magnitude;
  const bool up = below_high < above_low || (below_high == above_low && low % 2 == 1);
  return sign | (up ? high : low);
}

void expect_nearest(float value) {
  ASSERT_EQ(Half(value).bits, nearest_half(value))
      << value << " = 0x" << std::hex << std::bit_cast<std::uint32_t>(value);
}

bool is_nan_bits(std::uint16_t bits) { return (bits & 0x7fff) > kHalfInfinity; }

TEST(Half, HasTheDefinedValueForAll65536Words) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const auto value = float(Half::from_bits(bits));
    if (is_nan_bits(bits))
      ASSERT_TRUE(std::isnan(value)) << i;
    else if ((bits & 0x7fff) == kHalfInfinity)
      ASSERT_EQ(value, (bits & 0x8000) != 0 ? -kInfinity : kInfinity);
    else
      ASSERT_EQ(double{value}, defined_value(bits)) << i;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << i;
  }
}

TEST(Half, ComesBackFromFloatForAll65536Words) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const std::uint16_t quiet = is_nan_bits(bits) ? bits | 0x200 : bits;
    ASSERT_EQ(Half(float(Half::from_bits(bits))).bits, quiet) << i;
  }
}

TEST(Half, RoundsToNearestEvenAtAndAroundEveryMidpoint) {
  for (std::uint16_t low = 0; low < kHalfInfinity; ++low) {
    const auto middle = static_cast<float>(
        (defined_value(low) + defined_value(static_cast<std::uint16_t>(low + 1))) / 2);
    for (const float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      expect_nearest(value);
      expect_nearest(-value);
    }
  }
}

TEST(Half, RoundsEveryExponentOfFloatIncludingSubnormals) {
  const std::uint32_t fractions[] = {0,        1,        0xfff,    0x1000,   0x1001,   0x1fff,
                                     0x2000,   0x3000,   0x3fffff, 0x400000, 0x400001, 0x7fe000,
                                     0x7fefff, 0x7ff000, 0x7ff001, 0x7fffff};
  for (std::uint32_t sign : {0u, 1u})
    for (std::uint32_t exponent = 0; exponent < 255; ++exponent)
      for (const std::uint32_t fraction : fractions)
        expect_nearest(std::bit_cast<float>(sign << 31 | exponent << 23 | fraction));
}

TEST(Half, RoundsAMillionRandomFloats) {
  constexpr std::uint64_t kSeed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  for (int i = 0; i < 1'000'000; ++i) {
    auto bits = static_cast<std::uint32_t>(random.bits());
    // Three of four lie where halves are: exponents 2^-27 .. 2^20.
    if (i % 4 != 0)
      bits = (bits & 0x807fffffu) | static_cast<std::uint32_t>(100 + random.below(48)) << 23;
    const auto value = std::bit_cast<float>(bits);
    if (!std::isnan(value)) expect_nearest(value);
  }
}

TEST(Half, OverflowsExactlyAt65520) {
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65519.99f).bits, 0x7bff);
  EXPECT_EQ(Half(std::nextafter(65520.0f, 0.0f)).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, kHalfInfinity);
  EXPECT_EQ(Half(-65520.0f).bits, 0xfc00);
  EXPECT_EQ(Half(std::numeric_limits<float>::max()).bits, kHalfInfinity);
  EXPECT_EQ(Half(kInfinity).bits, kHalfInfinity);
  EXPECT_EQ(Half(-kInfinity).bits, 0xfc00);
}

TEST(Half, UnderflowsToASignedZeroAtHalfTheSmallestSubnormal) {
  EXPECT_EQ(Half(0x1p-25f).bits, 0);
  EXPECT_EQ(Half(-0x1p-25f).bits, 0x8000);
  EXPECT_EQ(Half(std::nextafter(0x1p-25f, 1.0f)).bits, 1);
  EXPECT_EQ(Half(0x1p-24f).bits, 1);
  EXPECT_EQ(Half(-0.0f).bits, 0x8000);
  EXPECT_EQ(Half(0x1.ff8p-15f).bits, 0x03ff) << "the largest subnormal";
  EXPECT_EQ(Half(0x1p-14f).bits, 0x0400) << "the smallest normal";
}

TEST(Half, KeepsSignAndTopFractionBitsOfANanAndMakesItQuiet) {
  EXPECT_EQ(Half(std::bit_cast<float>(0x7fc00000u)).bits, 0x7e00);
  EXPECT_EQ(Half(std::bit_cast<float>(0xffd54000u)).bits, 0xfeaa);
  EXPECT_EQ(Half(std::bit_cast<float>(0x7f800001u)).bits, 0x7e00) << "payload below the kept bits";
  EXPECT_EQ(Half(std::bit_cast<float>(0x7fffffffu)).bits, 0x7fff);
}

TEST(Half, ComparesAsFloatsDo) {
  EXPECT_EQ(Half(0.0f), Half(-0.0f));
  EXPECT_NE(Half(1.0f), Half(-1.0f));
  const Half nan = Half::from_bits(0x7e00);
  EXPECT_FALSE(nan == nan);
}

TEST(Half, ConvertsAtCompileTime) {
  static_assert(Half(1.5f).bits == 0x3e00);
  static_assert(float(Half::from_bits(0xc000)) == -2.0f);
  static_assert(Half().bits == 0);
  static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2);
}

// As nearest_half, from the two words around the float; the one above the largest is 2^128.
std::uint16_t nearest_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto low = static_cast<std::uint16_t>(bits >> 16 & 0x7fff);
  const auto magnitude_of = [](std::uint32_t word) {
    return word == 0x7f80 ? 0x1p128 : double{std::bit_cast<float>(word << 16)};
  };
  const double magnitude = std::abs(double{value});
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (low == 0x7f80) return sign | low;
  const double above_low = magnitude - magnitude_of(low);
  const double below_high = magnitude_of(low + 1u) - magnitude;
  const bool up = below_high < above_low || (below_high == above_low && low % 2 == 1);
  return static_cast<std::uint16_t>(sign | (low + (up ? 1 : 0)));
}

TEST(BFloat16, ComesBackFromFloatForAll65536Words) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const bool nan = (bits & 0x7fff) > 0x7f80;
    const auto value = float(BFloat16::from_bits(bits));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), i << 16);
    ASSERT_EQ(BFloat16(value).bits, nan ? bits | 0x40 : bits) << i;
  }
}

TEST(BFloat16, RoundsToNearestEvenAtAndAroundEveryMidpoint) {
  for (std::uint32_t low = 0; low < 0x7f80; ++low)
    for (const std::uint32_t tail : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      for (const std::uint32_t sign : {0u, 0x80000000u}) {
        const auto value = std::bit_cast<float>(sign | low << 16 | tail);
        ASSERT_EQ(BFloat16(value).bits, nearest_bfloat16(value)) << low << " " << tail;
      }
}

TEST(BFloat16, RoundsAMillionRandomFloats) {
  constexpr std::uint64_t kSeed = 12;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random.bits()));
    if (std::isnan(value)) continue;
    ASSERT_EQ(BFloat16(value).bits, nearest_bfloat16(value)) << value;
  }
}

TEST(BFloat16, KeepsInfinitiesAndNans) {
  EXPECT_EQ(BFloat16(kInfinity).bits, 0x7f80);
  EXPECT_EQ(BFloat16(-kInfinity).bits, 0xff80);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x7f800001u)).bits, 0x7fc0);
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0xffffffffu)).bits, 0xffff);
  EXPECT_EQ(BFloat16(0.0f), BFloat16(-0.0f));
}

// The reference above has to bite: a conversion that cuts instead of rounding must not pass.
TEST(HalfReference, RejectsTruncation) {
  const float value = 1.0f + 0x1.8p-11f;
  const auto cut = static_cast<std::uint16_t>(
      ((std::bit_cast<std::uint32_t>(value) >> 13) - (112u << 10)) & 0xffff);
  EXPECT_EQ(cut, 0x3c00);
  EXPECT_NE(cut, nearest_half(value));
}

}  // namespace
}  // namespace tessera
