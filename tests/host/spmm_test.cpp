#include "tessera/host/spmm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/half.hpp"
#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/trials.hpp"

namespace tessera::host {
namespace {

// A matrix as another library keeps it, and the operands of a product with it.
template <class T, class Index>
struct SpmmCase {
  sparse::Csr<float> pattern;
  std::vector<Index> row_begin, col;
  std::vector<T> values;
  Matrix<T> b, c;

  SpmmCase(std::int64_t x, std::int64_t y, std::int64_t z, BlockShape block, double density)
      : pattern(sparse::random_pattern(x, y, block, density, 3)),
        row_begin(pattern.row_begin.begin(), pattern.row_begin.end()),
        col(pattern.col.begin(), pattern.col.end()),
        b(random_matrix<T>(y, z, 5)),
        c(random_matrix<T>(x, z, 6)) {
    Random random(7);
    for (float& value : pattern.values) {
      value = float(T(float(2 * random.unit() - 1)));
      values.push_back(T(value));
    }
  }

  CompressedRows<T, Index> a() const {
    return {pattern.rows, pattern.cols, pattern.block, row_begin, col, values};
  }
  Matrix<T> run(const SpmmOptions<T>& options = {}, int threads = 2) const {
    Matrix<T> result = c;
    spmm<T>(a(), b.view(), result.view(), *make_executor(threads), options);
    return result;
  }
};

// The product in double precision, and the sum of the magnitudes that it adds up.
struct Reference {
  double sum = 0, magnitude = 0;
};

template <class T, class Index>
Matrix<Reference> reference(const SpmmCase<T, Index>& s) {
  Matrix<Reference> result(s.c.rows(), s.c.cols());
  const BlockShape block = s.pattern.block;
  for (std::int64_t row = 0; row < s.pattern.block_rows(); ++row)
    for (std::int64_t i = s.row_begin[std::size_t(row)]; i < s.row_begin[std::size_t(row) + 1]; ++i)
      for (std::int64_t e = 0; e < block.area(); ++e)
        for (std::int64_t z = 0; z < s.c.cols(); ++z) {
          const double product =
              double(float(s.values[std::size_t(i * block.area() + e)])) *
              double(float(s.b(s.col[std::size_t(i)] * block.cols + e % block.cols, z)));
          Reference& r = result(row * block.rows + e / block.cols, z);
          r.sum += product, r.magnitude += std::abs(product);
        }
  return result;
}

template <class T>
constexpr double kRounding = std::is_same_v<T, float>  ? 0x1p-24
                             : std::is_same_v<T, Half> ? 0x1p-11
                                                       : 0x1p-8;

template <class T, class Index>
void expect_right(const SpmmCase<T, Index>& s, const SpmmOptions<T>& options) {
  const Matrix<T> got = s.run(options);
  const Matrix<Reference> expected = reference(s);
  for (std::int64_t r = 0; r < got.rows(); ++r)
    for (std::int64_t z = 0; z < got.cols(); ++z) {
      const double old = options.beta == 0 ? 0 : options.beta * double(float(s.c(r, z)));
      const double bias = options.bias.empty() ? 0 : options.bias[std::size_t(r)];
      double sum = options.alpha * expected(r, z).sum + old + bias;
      const double size = std::abs(options.alpha) * expected(r, z).magnitude + std::abs(old) +
                          std::abs(bias) + std::abs(sum);
      if (options.activation == Activation::Relu) sum = std::max(sum, 0.0);
      ASSERT_NEAR(float(got(r, z)), sum, size * (4 * kRounding<T> + 300 * 0x1p-24) + 1e-7)
          << "row " << r << ", column " << z;
    }
}

template <class T>
class Spmm : public testing::Test {};
using AllTypes = testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(Spmm, AllTypes);

TYPED_TEST(Spmm, AgreesWithDoublePrecision) {
  test::Cases cases;
  std::vector<float> bias(48);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = float(i % 5) - 2;
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}, {3, 5}, {16, 16}})
    for (const std::int64_t z : {1, 3, 16, 70})
      for (const double density : {0.0, 0.1, 1.0})
        for (const SpmmOptions<TypeParam>& options :
             {SpmmOptions<TypeParam>{},
              {.beta = 1},
              {.alpha = -0.5f, .beta = 2},
              {.alpha = 2, .bias = bias, .activation = Activation::Relu}}) {
          if (!cases.next()) continue;
          SCOPED_TRACE(testing::Message() << "block " << block.rows << "x" << block.cols << ", "
                                          << z << " columns, density " << density << ", alpha "
                                          << options.alpha << ", beta " << options.beta);
          expect_right(SpmmCase<TypeParam, std::int32_t>(48, 240, z, block, density), options);
          expect_right(SpmmCase<TypeParam, std::int64_t>(48, 240, z, block, density), options);
        }
}

// 5,000 rows of B do not fit in a second-level cache, so B is cut in panels.
TYPED_TEST(Spmm, CutsWideOperandsInPanels) {
  expect_right(SpmmCase<TypeParam, std::int32_t>(130, 5000, 200, {1, 1}, 0.05), {});
  expect_right(SpmmCase<TypeParam, std::int64_t>(128, 4992, 131, {8, 8}, 0.05), {});
}

TYPED_TEST(Spmm, TakesColumnsInAnyOrderOfWideMatrices) {
  SpmmCase<TypeParam, std::int32_t> s(130, 5000, 200, {1, 1}, 0.05);
  for (std::size_t row = 0; row + 1 < s.row_begin.size(); row += 7)
    std::reverse(s.col.begin() + s.row_begin[row], s.col.begin() + s.row_begin[row + 1]);
  expect_right(s, {});
  expect_right(s, SpmmOptions<TypeParam>{.beta = 1});
}

TYPED_TEST(Spmm, HasTheSameBitsForAnyThreadsAndStrides) {
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}})
    for (const float beta : {0.0f, 1.0f, 0.5f}) {
      const SpmmCase<TypeParam, std::int32_t> s(160, 3000, 150, block, 0.05);
      const SpmmOptions<TypeParam> options{.beta = beta};
      const Matrix<TypeParam> expected = s.run(options, 1);
      for (const int threads : {2, 3, 7}) EXPECT_EQ(s.run(options, threads), expected);
      Matrix<TypeParam> b(150, 3000), c(150, 160);  // the batch first
      for (std::int64_t z = 0; z < 150; ++z) {
        for (std::int64_t y = 0; y < 3000; ++y) b(z, y) = s.b(y, z);
        for (std::int64_t x = 0; x < 160; ++x) c(z, x) = s.c(x, z);
      }
      spmm<TypeParam>(s.a(), std::as_const(b).view().transposed(), c.view().transposed(),
                      *make_executor(2), options);
      for (std::int64_t z = 0; z < 150; ++z)
        for (std::int64_t x = 0; x < 160; ++x) {
          if (beta == 1.0f)  // in place the old value is added first, elsewhere last
            ASSERT_NEAR(float(c(z, x)), float(expected(x, z)), 0.1);
          else
            ASSERT_EQ(c(z, x), expected(x, z));
        }
    }
}

// Rows are read so often that the last panel is filled up to whole vectors.
TEST(SpmmLists, HaveTheOldValueAsTheFirstTermWhateverTheColumns) {
  constexpr std::int64_t kRows = 100, kValues = 40;
  std::vector<std::int32_t> row_begin{0}, col;
  std::vector<float> values;
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t i = 0; i < kValues; ++i) {
      col.push_back(std::int32_t((row + i) % kRows));
      values.push_back(i == 0 ? 0x1p26f : i == 1 ? -0x1p26f : 0.0f);
    }
    row_begin.push_back(std::int32_t(col.size()));
  }
  const CompressedRows<float, std::int32_t, std::int32_t> a{kRows,     kRows, {1, 1},
                                                            row_begin, col,   values};
  for (const std::int64_t z : {2, 3, 5, 16, 17, 50, 64, 70, 130}) {
    Matrix<float> b(kRows, z), c(kRows, z);
    std::ranges::fill(b.elements(), 1.0f);
    std::ranges::fill(c.elements(), 1.0f);
    spmm<float>(a, std::as_const(b).view(), c.view(), *make_executor(1), {.beta = 1});
    for (const float sum : c.elements()) ASSERT_EQ(sum, 0.0f) << z;  // 1 is lost in 2^26
  }
}

TEST(SpmmLists, MayBeThoseOfACsr) {
  const SpmmCase<float, std::int32_t> s(60, 80, 33, {4, 4}, 0.3);
  const sparse::Csr<float>& w = s.pattern;
  Matrix<float> c(60, 33);
  const CompressedRows<float, std::int32_t, std::int64_t> a{w.rows,      w.cols, w.block,
                                                            w.row_begin, w.col,  w.values};
  spmm<float>(a, s.b.view(), c.view(), *make_executor(1));
  EXPECT_EQ(c, s.run());
}

TEST(SpmmLists, MayHaveColumnsInAnyOrderAndTwice) {
  const std::vector<std::int32_t> row_begin{0, 3, 3}, col{2, 0, 2};
  const std::vector<float> values{1, 10, 100};
  Matrix<float> b(3, 1), c(2, 1);
  b(0, 0) = 1, b(1, 0) = 2, b(2, 0) = 3;
  c(1, 0) = NAN;  // is not read
  spmm<float>(CompressedRows<float>{2, 3, {1, 1}, row_begin, col, values}, std::as_const(b).view(),
              c.view(), *make_executor(1));
  EXPECT_EQ(c(0, 0), 313.0f);
  EXPECT_EQ(c(1, 0), 0.0f);
}

TEST(SpmmLists, MayBelongToAMatrixWithoutRowsOrColumns) {
  const std::vector<std::int32_t> none{0}, one{0, 0}, no_col;
  const std::vector<float> no_values;
  Matrix<float> b(0, 4), c(1, 4);
  c(0, 2) = 3;
  spmm<float>(CompressedRows<float>{1, 0, {1, 1}, one, no_col, no_values}, std::as_const(b).view(),
              c.view(), *make_executor(1));
  EXPECT_EQ(c(0, 2), 0.0f);
  Matrix<float> empty(0, 4), wide(5, 4);
  spmm<float>(CompressedRows<float>{0, 5, {1, 1}, none, no_col, no_values},
              std::as_const(wide).view(), empty.view(), *make_executor(1));
}

template <class Damage>
void expect_refused(ErrorCode code, const char* part, Damage&& damage) {
  SpmmCase<Half, std::int64_t> s(32, 48, 6, {4, 4}, 0.5);
  const Matrix<Half> before = s.c;
  CompressedRows<Half, std::int64_t> a = s.a();
  MatrixView<const Half> b = std::as_const(s.b).view();
  MatrixView<Half> c = s.c.view();
  SpmmOptions<Half> options;
  damage(s, a, b, c, options);
  try {
    spmm<Half>(a, b, c, *make_executor(2), options);
    ADD_FAILURE() << "was taken, not refused with: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    EXPECT_EQ(s.c, before);
  }
}

TEST(SpmmLists, AreRefusedWithTheirPlaceIfTheyAreNoMatrix) {
  const auto input = ErrorCode::BadInput, argument = ErrorCode::InvalidArgument;
  const auto col = [&](std::int64_t to) { return [to](auto& s, auto&...) { s.col[5] = to; }; };
  expect_refused(input, "place 5 is in block column 12", col(12));
  expect_refused(input, "place 5 is in block column -1", col(-1));
  expect_refused(input, "place 5 is in block column 4294967296", col(std::int64_t{1} << 32));
  expect_refused(input, "descends after block row 2",
                 [](auto& s, auto&...) { s.row_begin[3] = 0; });
  expect_refused(input, "goes from 1", [](auto& s, auto&...) { s.row_begin[0] = 1; });
  expect_refused(input, "must go from 0", [](auto& s, auto&...) { s.row_begin.back() += 1; });
  expect_refused(input, "row_begin has 8 positions", [](auto&, auto& a, auto&...) {
    a.row_begin = a.row_begin.first(a.row_begin.size() - 1);
  });
  expect_refused(input, "row_begin has 0 positions",
                 [](auto&, auto& a, auto&...) { a.row_begin = {}; });
  expect_refused(input, "values;",
                 [](auto&, auto& a, auto&...) { a.values = a.values.first(a.values.size() - 1); });
  expect_refused(argument, "whole blocks", [](auto&, auto& a, auto&...) { a.rows = 31; });
  expect_refused(argument, "whole blocks", [](auto&, auto& a, auto&...) { a.block = {0, 4}; });
  expect_refused(argument, "B 47 x 6", [](auto&, auto&, auto& b, auto&...) { b.rows = 47; });
  expect_refused(argument, "C 32 x 5", [](auto&, auto&, auto&, auto& c, auto&) { c.cols = 5; });
  expect_refused(argument, "shares memory with the operand B",
                 [](auto& s, auto&, auto& b, auto&...) {
                   b = MatrixView<const Half>{s.c.elements().data(), 48, 6, 0, 1};
                 });
  const std::vector<float> bias(31);
  expect_refused(argument, "bias has 31",
                 [&](auto&, auto&, auto&, auto&, auto& options) { options.bias = bias; });
}

TEST(SpmmLists, AreRefusedWithBlocksThatNoKernelTakes) {
  const std::vector<std::int32_t> row_begin{0, 1}, col{0};
  const std::vector<Half> values(65 * 64);
  const Matrix<Half> b(64, 2);
  Matrix<Half> c(65, 2);
  EXPECT_THROW(spmm<Half>(CompressedRows<Half>{65, 64, {65, 64}, row_begin, col, values}, b.view(),
                          c.view(), *make_executor(1)),
               Error);
}

}  // namespace
}  // namespace tessera::host
