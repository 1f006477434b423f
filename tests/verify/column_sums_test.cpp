#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/verify/internal/matrix_sums.hpp"
#include "tessera/verify/internal/vector_sums.hpp"
#include "tessera/verify/self_check.hpp"

// The sums by which products are checked: vector code beside plain loops, and the sums of a factor.
namespace tessera::verify {
namespace {

constexpr std::int64_t kRows = 45;  // not a multiple of the rows that add_matrix copies

std::vector<double> random_weights(std::uint64_t seed) {
  Random random(seed);
  std::vector<double> weights(kRows);
  for (double& w : weights) w = 2 * random.unit() - 1;
  return weights;
}

template <class T>
void expect_sums_of_a_plain_loop(MatrixView<const T> matrix) {
  const std::vector<double> weights = random_weights(1);
  const std::vector<float> squares(kRows, 0.5f);
  std::vector<double> sums(std::size_t(matrix.cols), 3.0);
  std::vector<float> of_squares(std::size_t(matrix.cols), 2.0f);
  internal::add_matrix<T>(matrix, {weights.data(), squares.data()}, sums.data(), of_squares.data());
  for (std::int64_t c = 0; c < matrix.cols; ++c) {
    double sum = 3, square = 2;
    for (std::int64_t r = 0; r < kRows; ++r) {
      const double value = double(float(matrix(r, c)));
      sum += weights[std::size_t(r)] * value;
      square += 0.5 * value * value;
    }
    EXPECT_NEAR(sums[std::size_t(c)], sum, 1e-12) << "column " << c << " of " << matrix.cols;
    EXPECT_NEAR(of_squares[std::size_t(c)], square, 1e-4) << "column " << c;
  }
}

template <class T>
void expect_sums_of_plain_loops() {
  for (const std::int64_t cols : {1, 3, 8, 17, 64, 71, 130}) {
    const auto matrix = random_matrix<T>(kRows, cols, 7);
    expect_sums_of_a_plain_loop<T>(matrix.view());
    const auto columns = random_matrix<T>(cols, kRows, 8);
    expect_sums_of_a_plain_loop<T>(columns.view().transposed());
  }
}

TEST(ColumnSums, AreThoseOfAPlainLoopForEveryTypeWidthAndStride) {
  expect_sums_of_plain_loops<float>();
  expect_sums_of_plain_loops<Half>();
  expect_sums_of_plain_loops<BFloat16>();
}

template <class T>
void expect_products_of_plain_loops() {
  for (const std::int64_t count : {1, 5, 16, 33, 64, 127, 200}) {
    const auto rows = random_matrix<T>(2, count, 9);
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const double product = double(float(rows(0, i))) * double(float(rows(1, i)));
      sum += product;
      squares += product * product;
    }
    const auto view = rows.view();
    const internal::RowProduct got = internal::multiply_rows(view.row(0), view.row(1), count);
    EXPECT_NEAR(got.sum, sum, 1e-5) << count;
    EXPECT_NEAR(got.squares, squares, 1e-4) << count;
  }
}

TEST(RowProducts, AreThoseOfAPlainLoopForEveryTypeAndLength) {
  expect_products_of_plain_loops<float>();
  expect_products_of_plain_loops<Half>();
  expect_products_of_plain_loops<BFloat16>();
  std::vector<double> a(77), b(77);
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = double(i);
    b[i] = double(3 * i + 1);
    sum += a[i] * b[i];
  }
  EXPECT_EQ(internal::dot(a.data(), b.data(), 77), sum);
}

// A NaN or an infinity must reach a sum, or a check would not see it.
TEST(ColumnSums, AreNotFiniteIfANumberIsNot) {
  for (const float value : {HUGE_VALF, NAN}) {
    auto matrix = random_matrix<Half>(kRows, 70, 3);
    matrix(40, 20) = Half(value);
    const std::vector<double> weights = random_weights(1);
    const std::vector<float> squares(kRows, 1.0f);
    std::vector<double> sums(70);
    std::vector<float> of_squares(70);
    internal::add_matrix<Half>(std::as_const(matrix).view(), {weights.data(), squares.data()},
                               sums.data(), of_squares.data());
    EXPECT_FALSE(std::isfinite(sums[20]));
    EXPECT_TRUE(std::isfinite(sums[19]));
  }
}

TEST(ProductSums, OfATransposeAreThoseOfTheTransposedMatrix) {
  auto matrix = sparse::random_pattern(30, 24, {3, 2}, 0.4, 5);
  Random random(6);
  for (float& v : matrix.values) v = float(random.unit() - 0.5);
  const ProductSums turned = product_sums<float>(matrix, Factor::Transpose, 24, 30);
  const ProductSums plain = product_sums<float>(sparse::transpose(matrix), Factor::Matrix, 24, 30);
  EXPECT_EQ(turned.weights, plain.weights);
  ASSERT_EQ(turned.sums.size(), 30u);
  for (std::size_t i = 0; i < 30; ++i)
    EXPECT_NEAR(turned.sums[i], plain.sums[i], 1e-9 * turned.scale);
  EXPECT_NEAR(turned.terms, plain.terms, 1e-4 * plain.terms);
  EXPECT_NEAR(turned.largest_row, plain.largest_row, 1e-9);
  EXPECT_FALSE(turned.whole);
}

// A matrix in whole blocks is larger than the layer; what is outside belongs to no result.
TEST(ProductSums, LeaveOutRowsAndColumnsBeyondResultAndOperand) {
  sparse::Csr<float> matrix = sparse::random_pattern(8, 8, {4, 4}, 1.0, 5);
  std::fill(matrix.values.begin(), matrix.values.end(), 1.0f);
  const ProductSums sums = product_sums<float>(matrix, Factor::Matrix, 7, 6);
  EXPECT_EQ(sums.sums.size(), 6u);
  EXPECT_EQ(sums.weights.size(), 7u);
  EXPECT_EQ(sums.terms, 6);
  EXPECT_EQ(sums.largest_row, 6);
  EXPECT_TRUE(sums.whole);
}

TEST(ProductSums, OfAMatrixWithoutBlocksAreZero) {
  const sparse::Csr<float> matrix{8, 8, {4, 4}, {0, 0, 0}, {}, {}};
  for (const Factor factor : {Factor::Matrix, Factor::Transpose}) {
    const ProductSums sums = product_sums<float>(matrix, factor, 8, 8);
    EXPECT_EQ(sums.sums, std::vector<double>(8));
    EXPECT_EQ(sums.terms, 0);
  }
}

TEST(KeptSums, AreMadeOnceForEachGroupAndFactorUntilTheyAreForgotten) {
  auto matrix = sparse::random_pattern(8, 8, {1, 1}, 0.5, 5);
  KeptSums kept;
  const double before = kept.of<float>(matrix, Factor::Matrix, 0, 8, 8).largest_row;
  for (float& v : matrix.values) v *= 3;
  EXPECT_EQ(kept.of<float>(matrix, Factor::Matrix, 0, 8, 8).largest_row, before);
  EXPECT_NE(kept.of<float>(matrix, Factor::Matrix, 1, 8, 8).largest_row, before);
  kept.forget();
  EXPECT_EQ(kept.of<float>(matrix, Factor::Matrix, 0, 8, 8).largest_row, 3 * before);
}

// Squares of these operands are beyond the largest float: no threshold can be computed, so results
// are computed again and a wrong one is found.
TEST(Checksums, RecomputeResultsWhoseThresholdOverflows) {
  auto weights = sparse::random_pattern(12, 20, {1, 1}, 0.5, 3);
  for (float& v : weights.values) v = 0.37f;
  auto in = random_matrix<float>(20, 5, 6);
  for (float& v : in.elements()) v *= 1e25f;
  Matrix<float> out(12, 5);
  for (std::int64_t r = 0; r < 12; ++r)
    for (std::int64_t b = weights.row_begin[std::size_t(r)];
         b < weights.row_begin[std::size_t(r) + 1]; ++b)
      for (std::int64_t z = 0; z < 5; ++z)
        out(r, z) += weights.values[std::size_t(b)] * in(weights.col[std::size_t(b)], z);
  const auto check = [&] {
    return check_product<float>(weights, std::as_const(in).view(), std::as_const(out).view(), {});
  };
  EXPECT_TRUE(check().ok()) << to_string(check());
  EXPECT_EQ(check().recomputed, 60);
  out(3, 2) *= 1.5f;
  EXPECT_EQ(check().first_wrong_row, 3);
}

}  // namespace
}  // namespace tessera::verify
