#include "tessera/codelets/cast.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/codelets/internal/fast/simd_targets.hpp"

namespace tessera::codelets {
namespace {

using internal::SimdTarget;
using internal::UseSimdTarget;

// Returns every exponent, ties and their neighbours in both types, infinities, and random bits.
std::vector<float> numbers() {
  std::vector<float> all;
  for (const std::uint32_t sign : {0u, 0x80000000u})
    for (std::uint32_t exponent = 0; exponent < 256; ++exponent)
      for (const std::uint32_t fraction : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x3000u, 0x7fffu,
                                           0x8000u, 0x8001u, 0x18000u, 0x7fffffu})
        if (exponent < 255 || fraction == 0)
          all.push_back(std::bit_cast<float>(sign | exponent << 23 | fraction));
  Random random(47);
  for (int i = 0; i < 20'000; ++i) {
    const auto number =
        std::bit_cast<float>(static_cast<std::uint32_t>(random.below(std::int64_t{1} << 32)));
    if (!std::isnan(number)) all.push_back(number);
  }
  return all;
}

template <class To>
class CastFloats : public testing::Test {};
using SmallTypes = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(CastFloats, SmallTypes);

TYPED_TEST(CastFloats, RoundAsConstructorsDoOnEveryTarget) {
  const std::vector<float> from = numbers();
  for (const SimdTarget& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    SCOPED_TRACE(target.name);
    const UseSimdTarget use(target);
    std::vector<TypeParam> to(from.size());
    cast_floats(from.data(), std::ssize(from), to.data());
    for (std::size_t i = 0; i < from.size(); ++i)
      ASSERT_EQ(to[i].bits, TypeParam(from[i]).bits) << from[i];
  }
}

TYPED_TEST(CastFloats, KeepWhatLiesBehindAndWhatIsNoNumber) {
  for (const SimdTarget& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    const UseSimdTarget use(target);
    for (std::int64_t count = 0; count <= 40; ++count) {
      const std::vector<float> from(std::size_t(count), NAN);
      std::vector<TypeParam> to(std::size_t(count) + 1, TypeParam(7.0f));
      cast_floats(from.data(), count, to.data());
      for (std::int64_t i = 0; i < count; ++i)
        ASSERT_TRUE(std::isnan(float(to[std::size_t(i)]))) << target.name << " count " << count;
      ASSERT_EQ(float(to.back()), 7.0f) << target.name << " count " << count;
    }
  }
}

}  // namespace
}  // namespace tessera::codelets
