#include "tessera/codelets/place_dots.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tessera/codelets/internal/fast/simd_targets.hpp"

namespace tessera::codelets {
namespace {

// Returns small whole numbers, whose sums are exact in any order.
std::vector<float> whole_numbers(std::int64_t count, std::int64_t seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(float((7 * i + seed) % 11 - 5));
  return values;
}

void expect_dots(BlockShape block, std::int64_t z, bool replaces) {
  SCOPED_TRACE(testing::Message() << block.rows << "x" << block.cols << ", z " << z);
  constexpr std::int64_t kColumns = 70;
  const std::int64_t stride = z + 3;
  const auto q_grad = whole_numbers(block.rows * stride, 1);
  const auto s = whole_numbers(kColumns * block.cols * stride, 2);
  std::vector<std::int32_t> columns;
  for (std::int64_t i = 0; i < kColumns; ++i) columns.push_back(std::int32_t(27 * i % kColumns));
  std::vector<float> gradients(std::size_t(kColumns * block.area()), 3.0f), expected;
  for (const std::int32_t column : columns)
    for (std::int64_t r = 0; r < block.rows; ++r)
      for (std::int64_t c = 0; c < block.cols; ++c) {
        float sum = replaces ? 0.0f : 3.0f;
        for (std::int64_t i = 0; i < z; ++i)
          sum += q_grad[std::size_t(r * stride + i)] *
                 s[std::size_t((column * block.cols + c) * stride + i)];
        expected.push_back(sum);
      }
  const RowPlaces all{.count = kColumns};
  place_dots(PlaceDots<float>{.block = block,
                              .rows = {&all, 1},
                              .columns = columns,
                              .q_grad = q_grad.data(),
                              .q_grad_stride = stride,
                              .s = s.data(),
                              .s_stride = stride,
                              .z = z,
                              .gradients = gradients.data(),
                              .replaces = replaces});
  EXPECT_EQ(gradients, expected);
}

TEST(PlaceDots, TakeColumnsInAnyOrderOnEveryTarget) {
  for (const internal::SimdTarget& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    SCOPED_TRACE(target.name);
    const internal::UseSimdTarget use(target);
    for (const BlockShape block : {BlockShape{1, 1}, {1, 3}, {4, 4}, {3, 5}, {16, 16}})
      for (const std::int64_t z : {1, 3, 5, 16, 33, 64, 256})
        for (const bool replaces : {true, false}) expect_dots(block, z, replaces);
  }
}

// Rows of all lengths up to some vectors, of which every second place is asked for in one call.
TEST(PlaceDots, ComputeOnlyTheGivenPartsOfManyRows) {
  constexpr std::int64_t kRows = 150, kColumns = 40, kZ = 64;
  const auto q_grad = whole_numbers(kRows * kZ, 3), s = whole_numbers(kColumns * kZ, 4);
  std::vector<std::int32_t> columns;
  std::vector<RowPlaces> parts;
  std::vector<float> expected;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::int64_t length = row % 101, first = std::ssize(columns);
    parts.push_back({row, first + length / 4, length / 2});
    for (std::int64_t i = 0; i < length; ++i) {
      columns.push_back(std::int32_t((11 * i + row) % kColumns));
      float sum = 7;
      for (std::int64_t k = 0; k < kZ; ++k)
        sum += q_grad[std::size_t(row * kZ + k)] * s[std::size_t(columns.back() * kZ + k)];
      const bool is_given = i >= length / 4 && i < length / 4 + length / 2;
      expected.push_back(is_given ? sum : 7);
    }
  }
  for (const internal::SimdTarget& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    SCOPED_TRACE(target.name);
    const internal::UseSimdTarget use(target);
    std::vector<float> gradients(columns.size(), 7.0f);
    place_dots(PlaceDots<float>{.block = {1, 1},
                                .rows = parts,
                                .columns = columns,
                                .q_grad = q_grad.data(),
                                .q_grad_stride = kZ,
                                .s = s.data(),
                                .s_stride = kZ,
                                .z = kZ,
                                .gradients = gradients.data(),
                                .replaces = false});
    EXPECT_EQ(gradients, expected);
  }
}

}  // namespace
}  // namespace tessera::codelets
