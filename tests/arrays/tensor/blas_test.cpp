#include "tessera/arrays/tensor/blas.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "tessera/arrays/tensor/slices.hpp"
#include "tessera/base/random.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::arrays {
namespace {

using test::raises;
using testing::ElementsAre;
using testing::Optional;

template <class T>
CooTensor<T> converted(const sparse::Csr<T>& m, std::type_identity<CooTensor<T>>) {
  return to_tensor(m);
}
template <class T>
SlicedCsr<T> converted(const sparse::Csr<T>& m, std::type_identity<SlicedCsr<T>>) {
  return to_sliced(m);
}
template <class T>
SlicedCsc<T> converted(const sparse::Csr<T>& m, std::type_identity<SlicedCsc<T>>) {
  return to_sliced(to_csc(m));
}

// Every format and type, through one face.
template <class X>
class Blas : public testing::Test {
 public:
  static X of(const sparse::Csr<typename X::Value>& m) {
    return converted(m, std::type_identity<X>());
  }
  static X matrix(const std::vector<std::string>& picture) {
    return of(cast<typename X::Value>(test::draw(picture)));
  }
  static X vector() { return matrix({"12.4"}); }  // of BLAS-01 to BLAS-03
};

using Formats = testing::Types<CooTensor<float>, CooTensor<double>, SlicedCsr<float>,
                               SlicedCsr<double>, SlicedCsc<float>, SlicedCsc<double>>;
TYPED_TEST_SUITE(Blas, Formats);

TYPED_TEST(Blas, BLAS_01_DotNrm2AsumAxpy) {
  using T = typename TypeParam::Value;
  const auto x = this->vector();
  std::vector<T> y = {1, 2, 3, 4};
  EXPECT_EQ(dot(x, std::span<const T>(y)), T(21));
  EXPECT_EQ(nrm2(x), T(std::sqrt(21.0)));
  EXPECT_EQ(asum(x), T(7));
  axpy(T(1), x, std::span<T>(y));
  EXPECT_THAT(y, ElementsAre(2, 4, 3, 8));
}

TYPED_TEST(Blas, BLAS_02_IamaxAndIaminGivePositionsInTheVector) {
  const auto x = this->vector();
  EXPECT_THAT(iamax(x), Optional(3));  // the stored element 2
  EXPECT_THAT(iamin(x), Optional(0));
  EXPECT_EQ(x.values()[2], 4);
}

TYPED_TEST(Blas, BLAS_03_RotFillsUpTheSparseVector) {
  using T = typename TypeParam::Value;
  auto x = this->vector();
  std::vector<T> y = {1, 2, 3, 4};
  rot(x, std::span<T>(y), T(1), T(2));
  EXPECT_THAT(x.values(), ElementsAre(3, 6, 6, 12));
  EXPECT_THAT(y, ElementsAre(-1, -2, 3, -4));
}

TYPED_TEST(Blas, BLAS_04_Gemv) {
  using T = typename TypeParam::Value;
  const auto a = this->matrix({"12", ".."});
  const std::vector<T> x = {1, 2};
  std::vector<T> y(2, std::numeric_limits<T>::quiet_NaN());
  gemv(a, std::span<const T>(x), std::span<T>(y));
  EXPECT_THAT(y, ElementsAre(5, 0));
}

TYPED_TEST(Blas, ColumnsAndPartsOfAMatrixAreVectors) {
  auto a = this->matrix({"1..", "2.3", "4.."});
  EXPECT_EQ(asum(this->matrix({"1", ".", "4"})), 5);
  if constexpr (requires { a.select({}); })
    EXPECT_THAT(iamax(a.select({Interval{0, 2}, Point{0}})), Optional(1));
  else
    EXPECT_THAT(iamax(a.view(Interval{0, 2}, Point{0})), Optional(1));
}

TYPED_TEST(Blas, RotAndScalThroughAViewChangeTheOriginal) {
  using T = typename TypeParam::Value;
  auto a = this->matrix({"1..", "2.3", "4.."});
  auto middle = [&] {
    if constexpr (requires { a.select({}); })
      return a.select({Point{1}});
    else
      return a.view(Point{1}, All{});
  }();
  scal(T(3), middle);
  std::vector<T> y = {6, 1, 0};
  rot(middle, std::span<T>(y), T(-1), T(1));
  const auto dense = to_dense(a);
  EXPECT_THAT(dense.elements(), ElementsAre(1, 0, 0, 0, 1, -9, 4, 0, 0));
  EXPECT_EQ(a.nnz(), 4);  // (1, 0) became zero and is gone
}

TYPED_TEST(Blas, ScalByZeroKeepsThePattern) {
  using T = typename TypeParam::Value;
  auto a = this->matrix({"1..", "2.3"});
  scal(T(0), a);
  EXPECT_THAT(a.values(), ElementsAre(0, 0, 0));
}

TYPED_TEST(Blas, IamaxTakesTheFirstOfSeveralAndNaNOnlyAlone) {
  using T = typename TypeParam::Value;
  EXPECT_THAT(iamax(this->matrix({".3.31"})), Optional(1));
  EXPECT_THAT(iamin(this->matrix({".3131"})), Optional(2));
  EXPECT_EQ(iamax(this->matrix({"...."})), std::nullopt);
  EXPECT_EQ(nrm2(this->matrix({"...."})), 0);
  auto x = this->matrix({"12"});
  const T nan = std::numeric_limits<T>::quiet_NaN();
  if constexpr (requires { x.select({}); })
    x.put({0, 0}, nan);
  else
    x.put(0, 0, nan);
  EXPECT_THAT(iamax(x), Optional(1));
  EXPECT_THAT(iamin(x), Optional(1));
}

TYPED_TEST(Blas, Nrm2NeitherOverflowsNorVanishes) {
  using T = typename TypeParam::Value;
  for (const T scale : {std::numeric_limits<T>::max() / 16, std::numeric_limits<T>::min() * 4}) {
    auto x = this->matrix({"3.4"});
    scal(scale, x);
    EXPECT_NEAR(double(nrm2(x) / scale), 5.0, 1e-6);
  }
}

// Truth: dense loops over small whole numbers, which are exact in any order.
TYPED_TEST(Blas, GemvAndGemmAgreeWithDenseLoops) {
  using T = typename TypeParam::Value;
  Random random(21);
  for (const Op op : {Op::Plain, Op::Transposed})
    for (const std::int64_t n : {1, 3, 8}) {
      const sparse::Csr<T> m = sparse::cast<T>(
          sparse::from_dense<double>(test::random_dense(6, 9, {1, 1}, 0.4, random).view(), {1, 1}));
      const TypeParam a = this->of(m);
      const Matrix<T> full = to_dense(op == Op::Plain ? m : sparse::transpose(m));
      Matrix<T> b(full.cols(), n), c(full.rows(), n);
      for (T& v : b.elements()) v = T(random.below(5));
      for (T& v : c.elements()) v = T(random.below(5));
      Matrix<T> expected = c;
      for (std::int64_t i = 0; i < full.rows(); ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          expected(i, j) *= 2;
          for (std::int64_t k = 0; k < full.cols(); ++k) expected(i, j) += 3 * full(i, k) * b(k, j);
        }
      Matrix<T> turned_b(n, full.cols()), turned_c(n, full.rows());
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t k = 0; k < full.cols(); ++k) turned_b(j, k) = b(k, j);
        for (std::int64_t i = 0; i < full.rows(); ++i) turned_c(j, i) = c(i, j);
      }
      const Scale<T> scale{3, 2, op};
      gemm(a, turned_b.view().transposed(), turned_c.view().transposed(), scale);
      gemm(a, b.view(), c.view(), scale);
      EXPECT_EQ(c, expected);
      for (std::int64_t i = 0; i < full.rows(); ++i) EXPECT_EQ(turned_c(0, i), expected(i, 0));
      if (n != 1) continue;
      std::vector<T> y(std::size_t(full.rows()), T(1));
      gemv(a, std::span<const T>(b.elements()), std::span<T>(y), Scale<T>{1, 0, op});
      for (std::int64_t i = 0; i < full.rows(); ++i) {
        T sum = 0;
        for (std::int64_t k = 0; k < full.cols(); ++k) sum += full(i, k) * b(k, 0);
        EXPECT_EQ(y[std::size_t(i)], sum);
      }
    }
}

TYPED_TEST(Blas, RefusesSizesThatDoNotMatch) {
  using T = typename TypeParam::Value;
  const auto a = this->matrix({"12", "..", "3."});
  auto x = this->vector();
  std::vector<T> two(2), three(3);
  const auto refuses = [](const char* part, const std::function<void()>& action) {
    return raises(ErrorCode::InvalidArgument, {part}, action);
  };
  EXPECT_TRUE(refuses("no vector", [&] { asum(a); }));
  EXPECT_TRUE(refuses("no vector", [&] { iamax(a); }));
  EXPECT_TRUE(refuses("4 elements", [&] { dot(x, std::span<const T>(three)); }));
  EXPECT_TRUE(refuses("4 elements", [&] { axpy(T(1), x, std::span<T>(three)); }));
  EXPECT_TRUE(refuses("4 elements", [&] { rot(x, std::span<T>(three), T(1), T(1)); }));
  EXPECT_TRUE(refuses("3 x 2", [&] { gemv(a, std::span<const T>(three), std::span<T>(two)); }));
  EXPECT_TRUE(refuses("2 x 3", [&] {
    gemv(a, std::span<const T>(two), std::span<T>(three), Scale<T>{.op = Op::Transposed});
  }));
  Matrix<T> b(2, 4), c(3, 5);
  EXPECT_TRUE(refuses("2 x 4", [&] { gemm(a, b.view(), c.view()); }));
}

}  // namespace
}  // namespace tessera::arrays
