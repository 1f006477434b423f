#include "tessera/base/matrix.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/pattern_stats.hpp"

namespace tessera {
namespace {

// Element (r, c) is r * cols + c.
Matrix<int> counted(std::int64_t rows, std::int64_t cols) {
  Matrix<int> m(rows, cols);
  std::iota(m.elements().begin(), m.elements().end(), 0);
  return m;
}

TEST(Matrix, StartsAtZeroAndLiesRowByRow) {
  const Matrix<float> zero(3, 2);
  EXPECT_EQ(zero.elements(), AlignedVector<float>(6, 0.0f));
  const Matrix<int> m = counted(3, 4);
  EXPECT_EQ(m.rows(), 3);
  EXPECT_EQ(m.cols(), 4);
  EXPECT_EQ(m(0, 3), 3);
  EXPECT_EQ(m(1, 0), 4);
  EXPECT_EQ(m(2, 3), 11);
}

TEST(Matrix, EqualMeansSameShapeAndElements) {
  EXPECT_EQ(counted(2, 3), counted(2, 3));
  EXPECT_NE(counted(2, 3), counted(3, 2)) << "the same six elements in another shape";
  Matrix<int> changed = counted(2, 3);
  changed(1, 2) = -1;
  EXPECT_NE(changed, counted(2, 3));
}

TEST(Matrix, MayBeEmptyInOneDirection) {
  EXPECT_EQ(Matrix<int>(0, 5).elements().size(), 0u);
  EXPECT_EQ(Matrix<int>(5, 0).view().rows, 5);
  EXPECT_EQ(Matrix<int>().rows(), 0);
}

TEST(Matrix, RefusesSizesThatDoNotFit) {
  const std::int64_t large = std::int64_t{1} << 32;
  try {
    const Matrix<char> m(large, large);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::LimitExceeded);
  }
}

TEST(Matrix, RefusesNegativeSizesEvenWhenTheirProductIsPositive) {
  const std::int64_t sizes[][2] = {{-1, 1}, {1, -1}, {-2, -3}, {0, -1}};
  for (const auto& [rows, cols] : sizes) {
    try {
      const Matrix<char> m(rows, cols);
      ADD_FAILURE() << rows << " x " << cols;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
    }
  }
}

TEST(MatrixView, WritesToTheMatrixItLooksAt) {
  Matrix<int> m = counted(2, 2);
  m.view()(1, 0) = 9;
  EXPECT_EQ(m(1, 0), 9);
  EXPECT_EQ(m.view().row(1), m.elements().data() + 2);
}

TEST(MatrixView, TransposedSwapsIndicesAndTwiceIsTheSame) {
  const Matrix<int> m = counted(3, 4);
  const MatrixView<const int> t = m.view().transposed();
  ASSERT_EQ(t.rows, 4);
  ASSERT_EQ(t.cols, 3);
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t c = 0; c < 4; ++c) {
      EXPECT_EQ(t(c, r), m(r, c));
      EXPECT_EQ(t.transposed()(r, c), m(r, c));
    }
}

TEST(MatrixView, SubIsAWindowAlsoOfATransposedView) {
  const Matrix<int> m = counted(4, 5);
  const MatrixView<const int> window = m.view().sub({1, 3}, {2, 5});
  ASSERT_EQ(window.rows, 2);
  ASSERT_EQ(window.cols, 3);
  EXPECT_EQ(window(0, 0), m(1, 2));
  EXPECT_EQ(window(1, 2), m(2, 4));
  const MatrixView<const int> turned = m.view().transposed().sub({2, 5}, {1, 3});
  for (std::int64_t r = 0; r < 2; ++r)
    for (std::int64_t c = 0; c < 3; ++c) EXPECT_EQ(turned(c, r), window(r, c));
  EXPECT_EQ(window.sub({1, 1}, {0, 3}).rows, 0);
}

TEST(MatrixView, KnowsWhetherRowsAreContiguous) {
  const Matrix<int> m = counted(3, 4);
  EXPECT_TRUE(m.view().rows_are_contiguous());
  EXPECT_TRUE(m.view().sub({0, 3}, {1, 3}).rows_are_contiguous());
  EXPECT_FALSE(m.view().transposed().rows_are_contiguous());
  EXPECT_TRUE(m.view().sub({0, 1}, {0, 4}).transposed().rows_are_contiguous())
      << "one element a row";
}

TEST(Matrix, BeginsOnACacheLine) {
  for (const std::int64_t cols : {1, 3, 1000, 300'000}) {
    const Matrix<float> m(3, cols), n(1, cols);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(m.view().data) % 64, 0u) << cols;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(n.view().data) % 64, 0u) << cols;
  }
}

TEST(MatrixView, BecomesAViewOfConstantsButNotBack) {
  static_assert(std::is_convertible_v<MatrixView<int>, MatrixView<const int>>);
  static_assert(!std::is_convertible_v<MatrixView<const int>, MatrixView<int>>);
  Matrix<int> m = counted(2, 3);
  const MatrixView<const int> view = m.view().transposed();
  EXPECT_EQ(view(2, 1), 5);
}

TEST(BlockShape, KnowsElementsAndTransposes) {
  EXPECT_TRUE(BlockShape{}.is_element());
  EXPECT_FALSE((BlockShape{1, 4}.is_element()));
  EXPECT_EQ((BlockShape{4, 8}.area()), 32);
  EXPECT_EQ((BlockShape{4, 8}.transposed()), (BlockShape{8, 4}));
}

TEST(PatternStats, CountsBlocksBeyond32Bits) {
  PatternStats stats;
  EXPECT_EQ(stats.blocks(), 0);
  stats.row_counts = {std::numeric_limits<std::int32_t>::max(), 2};
  EXPECT_EQ(stats.blocks(), 2147483649);
}

}  // namespace
}  // namespace tessera
