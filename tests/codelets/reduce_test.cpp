#include "tessera/codelets/reduce.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/codelets/internal/fast/simd_targets.hpp"

namespace tessera::codelets {
namespace {

using internal::UseSimdTarget;

// The sum of 1, 2^-24 and 2^-24 in this order is 1; in the opposite order it is larger.
TEST(AddFloats, AddInTheOrderOfTheirSourcesAtEveryRemainderOnEveryTarget) {
  constexpr std::int64_t kMost = 140, kFirst = 3;
  Random random(53);
  std::vector<std::vector<float>> arrays(5, std::vector<float>(std::size_t(kMost + kFirst)));
  for (auto& array : arrays)
    for (float& v : array) v = random.below(3) == 0 ? 1 : 0x1p-24f;
  std::vector<const std::byte*> sources;
  for (const auto& array : arrays)
    sources.push_back(reinterpret_cast<const std::byte*>(array.data()));
  for (const auto& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    const UseSimdTarget use(target);
    for (const std::size_t depth : {1, 2, 5})
      for (std::int64_t count = 0; count <= kMost; ++count) {
        std::vector<float> to(std::size_t(count) + 1, 7);
        add_floats({std::span(sources).first(depth), kFirst, count}, to.data());
        for (std::int64_t i = 0; i < count; ++i) {
          const auto at = std::size_t(kFirst + i);
          float sum = arrays[0][at];
          for (std::size_t s = 1; s < depth; ++s) sum += arrays[s][at];
          ASSERT_EQ(to[std::size_t(i)], sum) << target.name << " " << count << " seed 53";
        }
        ASSERT_EQ(to.back(), 7) << target.name << " " << count;
      }
  }
}

TEST(AddAndClear, MovesSumsAtEveryRemainderOnEveryTarget) {
  constexpr std::int64_t kMost = 70;
  Random random(54);
  std::vector<float> given(std::size_t(kMost) + 1), sums(given);
  for (float& v : given) v = float(random.below(1000));
  for (float& v : sums) v = float(random.below(1000));
  for (const auto& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    const UseSimdTarget use(target);
    for (std::int64_t count = 0; count <= kMost; ++count) {
      std::vector<float> from = given, to = sums;
      add_and_clear(from.data(), count, to.data());
      for (std::int64_t i = 0; i <= kMost; ++i) {
        const auto at = std::size_t(i);
        const bool moves = i < count;
        ASSERT_EQ(from[at], moves ? 0 : given[at]) << target.name << " " << count << " seed 54";
        ASSERT_EQ(to[at], sums[at] + (moves ? given[at] : 0)) << target.name << " " << count;
      }
    }
  }
}

template <class T>
void expect_largest() {
  for (std::size_t count = 0; count <= 140; ++count) {
    std::vector<T> list(count, T(3));
    EXPECT_EQ(largest(std::span<const T>(list)), count == 0 ? 0u : 3u);
    for (std::size_t at = 0; at < count; ++at) {
      list[at] = T(-2);  // a negative number of the caller's
      ASSERT_EQ(largest(std::span<const T>(list)), T(-2)) << at << " of " << count;
      list[at] = T(3);
    }
  }
}

TEST(Largest, IsFoundAtEveryPlaceOnEveryTarget) {
  for (const auto& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    SCOPED_TRACE(target.name);
    const UseSimdTarget use(target);
    expect_largest<std::uint32_t>();
    expect_largest<std::uint64_t>();
  }
}

}  // namespace
}  // namespace tessera::codelets
