#include "tessera/codelets/transpose.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/codelets/internal/fast/simd_targets.hpp"

namespace tessera::codelets {
namespace {

using internal::SimdTarget;
using internal::UseSimdTarget;

template <class T>
class Transpose : public testing::Test {};
using AllTypes = testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(Transpose, AllTypes);

// A gap after each row of both, filled with 7, shows what was written beyond the transpose.
template <class T>
void expect_transposed(std::int64_t rows, std::int64_t cols) {
  SCOPED_TRACE(testing::Message() << rows << " x " << cols);
  constexpr std::int64_t kGap = 3;
  const Matrix<T> from = random_matrix<T>(rows, cols + kGap, 5);
  const std::int64_t stride = rows + kGap;
  std::vector<T> to(std::size_t(cols * stride), T(7.0f));
  transpose(from.elements().data(), cols + kGap, rows, cols, to.data(), stride);
  for (std::int64_t c = 0; c < cols; ++c)
    for (std::int64_t r = 0; r < stride; ++r)
      ASSERT_EQ(float(to[std::size_t(c * stride + r)]), r < rows ? float(from(r, c)) : 7.0f)
          << "row " << r << ", column " << c;
}

TYPED_TEST(Transpose, MovesEveryElementAndNoOtherOnEveryTarget) {
  for (const SimdTarget& target : internal::simd_targets()) {
    if (!target.runs_here) continue;
    SCOPED_TRACE(target.name);
    const UseSimdTarget use(target);
    for (const std::int64_t rows : {0, 1, 3, 4, 5, 7, 8, 9, 16, 31, 65})
      for (const std::int64_t cols : {0, 1, 3, 4, 5, 7, 8, 9, 16, 31, 33, 70})
        expect_transposed<TypeParam>(rows, cols);
    // Rows that are far apart on one side, or on both.
    for (const auto& [rows, cols] : {std::pair{52, 300}, {300, 52}, {330, 300}, {300, 330}})
      expect_transposed<TypeParam>(rows, cols);
  }
}

TYPED_TEST(Transpose, GoesBackwardsThroughMemoryWithNegativeStrides) {
  constexpr std::int64_t kRows = 9, kCols = 18;
  const Matrix<TypeParam> from = random_matrix<TypeParam>(kRows, kCols, 6);
  Matrix<TypeParam> to(kCols, kRows);
  transpose(from.elements().data() + (kRows - 1) * kCols, -kCols, kRows, kCols,
            to.elements().data() + (kCols - 1) * kRows, -kRows);
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t c = 0; c < kCols; ++c)
      ASSERT_EQ(float(to(kCols - 1 - c, r)), float(from(kRows - 1 - r, c)));
}

}  // namespace
}  // namespace tessera::codelets
