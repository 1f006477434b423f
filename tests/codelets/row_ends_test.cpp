#include "tessera/codelets/row_ends.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/codelets/internal/fast/simd_targets.hpp"

namespace tessera::codelets {
namespace {

constexpr std::int64_t kWidest = 70, kEndedRows = 3, kEndsStride = kWidest + 1;
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

std::vector<float> special_numbers(std::uint64_t seed) {
  Random random(seed);
  std::vector<float> numbers(std::size_t(kEndedRows * kEndsStride));
  for (float& v : numbers) {
    const float special[] = {0.0f, -0.0f, kNotANumber, std::numeric_limits<float>::infinity()};
    const auto kind = random.below(12);
    v = kind < 4 ? special[kind] : float(2 * random.unit() - 1);
  }
  return numbers;
}

template <class Run>
void on_every_target(const Run& run) {
  for (const auto& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    SCOPED_TRACE(target.name);
    const internal::UseSimdTarget use(target);
    run();
  }
}

// Compares rows of `cols` numbers, and what is behind them, with those that expected(row, place)
// gives. A NaN is one of any bits.
template <class Expected>
void expect_ends(const std::vector<float>& found, const std::vector<float>& given,
                 std::int64_t cols, const Expected& expected) {
  for (std::int64_t r = 0; r < kEndedRows; ++r)
    for (std::int64_t i = 0; i < kEndsStride; ++i) {
      const auto at = std::size_t(r * kEndsStride + i);
      const float wanted = i < cols ? expected(r, at) : given[at];
      const bool is_same = wanted != wanted ? found[at] != found[at]
                                            : std::bit_cast<std::uint32_t>(found[at]) ==
                                                  std::bit_cast<std::uint32_t>(wanted);
      ASSERT_TRUE(is_same) << found[at] << " instead of " << wanted << ", row " << r << ", place "
                           << i << " of " << cols;
    }
}

TEST(RowEnds, HaveBiasAndThenNoNumberBelowZeroAtEveryWidthOnEveryTarget) {
  const std::vector<float> given = special_numbers(3), bias = {0.5f, -0.0f, kNotANumber};
  on_every_target([&] {
    for (std::int64_t cols = 0; cols <= kWidest; ++cols)
      for (const bool relu : {false, true})
        for (const float* const added : {bias.data(), static_cast<const float*>(nullptr)}) {
          std::vector<float> sums = given;
          add_bias_and_clip({sums.data(), kEndsStride, kEndedRows, cols}, added, relu);
          expect_ends(sums, given, cols, [&](std::int64_t r, std::size_t at) {
            const float biased = added == nullptr ? given[at] : given[at] + added[r];
            return relu && biased < 0 ? 0.0f : biased;
          });
        }
  });
}

TEST(RowEnds, AreKeptWhereOutputsArePositiveAtEveryWidthOnEveryTarget) {
  const std::vector<float> given = special_numbers(4), outputs = special_numbers(5);
  on_every_target([&] {
    for (std::int64_t cols = 0; cols <= kWidest; ++cols) {
      std::vector<float> sums = given;
      keep_where_positive({sums.data(), kEndsStride, kEndedRows, cols}, outputs.data(),
                          kEndsStride);
      expect_ends(sums, given, cols,
                  [&](std::int64_t, std::size_t at) { return outputs[at] > 0 ? given[at] : 0.0f; });
    }
  });
}

TEST(SumInLanes, AddsEverySixteenthNumberAndThenTheirSumsOnEveryTarget) {
  Random random(6);
  std::vector<float> values(std::size_t{kWidest});
  for (float& v : values) v = float(2 * random.unit() - 1);
  on_every_target([&] {
    for (std::size_t count = 0; count <= values.size(); ++count) {
      float sum = 0;
      for (std::size_t lane = 0; lane < 16; ++lane) {
        float own = 0;
        for (std::size_t i = lane; i < count; i += 16) own += values[i];
        sum += own;
      }
      ASSERT_EQ(sum_in_lanes(values.data(), std::int64_t(count)), sum) << count;
    }
  });
}

}  // namespace
}  // namespace tessera::codelets
