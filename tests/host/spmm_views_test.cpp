#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/host/spmm.hpp"
#include "tessera/tests/host/list_case.hpp"
#include "tessera/tests/support/trials.hpp"

// spmm() and spmv() on compressed columns and lists of places, and their epilogues.
namespace tessera::host {
namespace {

using test::ListCase;

template <class T, class Index>
struct ViewsCase {
  ListCase<T, Index> list;
  Matrix<T> b, c, mask;
  std::vector<float> bias;

  ViewsCase(std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t places)
      : list(x, y, places),
        b(random_matrix<T>(y, z, 5)),
        c(random_matrix<T>(x, z, 6)),
        mask(random_matrix<T>(x, z, 7)) {
    for (std::int64_t r = 0; r < x; ++r) bias.push_back(float(r % 5) - 2);
  }

  template <class View>
  Matrix<T> run(const View& a, const SpmmOptions<T>& options, int threads = 2) const {
    Matrix<T> result = c;
    spmm<T>(a, b.view(), result.view(), *make_executor(threads), options);
    return result;
  }
  // The same with the batch first.
  template <class View>
  Matrix<T> run_batch_first(const View& a, const SpmmOptions<T>& options) const {
    const Matrix<T> in = test::turned(b);
    Matrix<T> out = test::turned(c);
    spmm<T>(a, in.view().transposed(), out.view().transposed(), *make_executor(3), options);
    return test::turned(out);
  }

  double finished(double sum, std::int64_t r, const SpmmOptions<T>& options) const {
    if (!options.bias.empty()) sum += options.bias[std::size_t(r)];
    if (options.activation == Activation::Relu) sum = std::max(sum, 0.0);
    if (options.activation == Activation::Gelu)
      sum = sum / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (sum + 0.044715 * sum * sum * sum)));
    return sum;
  }
  void expect_right(const Matrix<T>& got, const SpmmOptions<T>& options) const {
    Matrix<double> sums(c.rows(), c.cols()), size(c.rows(), c.cols());
    for (std::size_t i = 0; i < list.row.size(); ++i)
      for (std::int64_t z = 0; z < c.cols(); ++z) {
        const double term = double(float(list.values[i])) * double(float(b(list.col[i], z)));
        sums(list.row[i], z) += term;
        size(list.row[i], z) += std::abs(term);
      }
    for (std::int64_t r = 0; r < c.rows(); ++r)
      for (std::int64_t z = 0; z < c.cols(); ++z) {
        const double old = options.beta == 0 ? 0 : options.beta * double(float(c(r, z)));
        const double sum = finished(options.alpha * sums(r, z) + old, r, options);
        const bool is_kept = options.where_positive.data == nullptr || float(mask(r, z)) > 0;
        const double allowed = std::abs(options.alpha) * size(r, z) + std::abs(old) + 3;
        ASSERT_NEAR(float(got(r, z)), is_kept ? sum : 0,
                    allowed * (4 * test::kRounding<T> + 300 * 0x1p-24))
            << "row " << r << ", column " << z;
      }
  }
  template <class View>
  void expect_right_for(const View& a, const SpmmOptions<T>& options) const {
    const Matrix<T> got = run(a, options);
    expect_right(got, options);
    for (const int threads : {1, 3, 8}) EXPECT_EQ(run(a, options, threads), got) << threads;
    if (options.beta != 1) {
      EXPECT_EQ(run_batch_first(a, options), got);
    }
  }

  void expect_all_views(const SpmmOptions<T>& options) const {
    const ListCase<T, Index> rows = list.by_row(), columns = list.by_column();
    const auto row_begin = rows.positions(rows.row, rows.rows);
    const auto col_begin = columns.positions(columns.col, columns.cols);
    expect_right_for(list.coordinates(), options);
    expect_right_for(rows.coordinates(), options);
    expect_right_for(columns.coordinates(), options);
    expect_right_for(
        CompressedColumns<T, Index>{list.rows, list.cols, col_begin, columns.row, columns.values},
        options);
    const CompressedRows<T, Index> compressed{list.rows, list.cols, {1, 1},
                                              row_begin, rows.col,  rows.values};
    expect_right_for(compressed, options);
    EXPECT_EQ(run(rows.coordinates(), options), run(compressed, options));
  }
};

template <class T>
class SpmmViews : public testing::Test {};
using AllTypes = testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(SpmmViews, AllTypes);

TYPED_TEST(SpmmViews, AgreeWithDoublePrecision) {
  for (const std::int64_t z : {1, 2, 16, 70})
    for (const std::int64_t places : {0, 50, 9000}) {
      if (tessera::test::kIsSanitized && z != 2 && z != 70) continue;
      SCOPED_TRACE(testing::Message() << z << " columns, " << places << " places");
      const ViewsCase<TypeParam, std::int32_t> c(60, 90, z, places);
      c.expect_all_views({});
      c.expect_all_views({.alpha = -0.5f, .beta = 2});
      c.expect_all_views({.beta = 1, .bias = c.bias, .activation = Activation::Relu});
      c.expect_all_views({.bias = c.bias, .activation = Activation::Gelu});
      c.expect_all_views({.alpha = 3, .where_positive = c.mask.view()});
      ViewsCase<TypeParam, std::int64_t>(60, 90, z, places).expect_all_views({.alpha = 2});
    }
}

// Panels of 64 columns; with 600 of them compressed columns and lists are sorted by rows.
TYPED_TEST(SpmmViews, CutWideOperandsInPanels) {
  ViewsCase<TypeParam, std::int32_t>(130, 700, 200, 40'000).expect_all_views({});
  const ViewsCase<TypeParam, std::int64_t> sorted(40, 60, 600, 2'000);
  sorted.expect_all_views({});
  sorted.expect_all_views({.alpha = -0.5f, .beta = 2});
  sorted.expect_all_views({.beta = 1, .bias = sorted.bias, .activation = Activation::Relu});
}

// The results of up to 1,024 rows need no memory of their own.
TYPED_TEST(SpmmViews, MultiplyAVectorIntoManyRows) {
  for (const std::int64_t rows : {1024, 1025, 5000})
    ViewsCase<TypeParam, std::int32_t>(rows, 40, 1, 3 * rows).expect_all_views({});
}

TYPED_TEST(SpmmViews, MultiplyVectors) {
  const ViewsCase<TypeParam, std::int32_t> c(300, 200, 1, 20'000);
  const auto executor = make_executor(2);
  std::vector<TypeParam> y(300);
  spmv<TypeParam>(c.list.coordinates(), c.b.elements(), y, *executor);
  Matrix<TypeParam> got(300, 1);
  std::copy(y.begin(), y.end(), got.elements().begin());
  c.expect_right(got, {});
  EXPECT_THROW(
      spmv<TypeParam>(c.list.coordinates(), c.b.elements(), std::span(y).first(299), *executor),
      Error);
}

template <class Call>
void expect_refusal(ErrorCode code, const std::string& part, Call&& call) {
  try {
    call();
    ADD_FAILURE() << "was taken, not refused with: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(SpmmViewLists, AreRefusedWithTheirPlaceIfTheyAreNoMatrix) {
  ViewsCase<float, std::int32_t> c(20, 30, 4, 100);
  const Matrix<float> before = c.c;
  const auto run = [&](const auto& a) {
    spmm<float>(a, std::as_const(c.b).view(), c.c.view(), *make_executor(2));
  };
  Coordinates<float> places = c.list.coordinates();
  c.list.row[7] = 20;
  expect_refusal(ErrorCode::BadInput, "place 7 is in row 20; rows must be in 0..19",
                 [&] { run(places); });
  c.list.row[7] = 19, c.list.col[99] = -1;
  expect_refusal(ErrorCode::BadInput, "place 99 is in column -1", [&] { run(places); });
  c.list.col[99] = 0;
  places.col = places.col.first(99);
  expect_refusal(ErrorCode::BadInput, "row has 100 places and col has 99", [&] { run(places); });
  places = c.list.coordinates();
  places.values = places.values.first(98);
  expect_refusal(ErrorCode::BadInput, "there are 98 values", [&] { run(places); });
  const ListCase<float, std::int32_t> columns = c.list.by_column();
  auto col_begin = columns.positions(columns.col, 30);
  CompressedColumns<float> csc{20, 30, col_begin, columns.row, columns.values};
  col_begin[4] = 100, col_begin[5] = 3;
  expect_refusal(ErrorCode::BadInput, "col_begin descends after column 4", [&] { run(csc); });
  csc.col_begin = csc.col_begin.first(30);
  expect_refusal(ErrorCode::BadInput, "col_begin has 30 positions", [&] { run(csc); });
  EXPECT_EQ(c.c, before);
}

TEST(SpmmViewLists, RefuseAMaskOfAnotherSize) {
  const ViewsCase<float, std::int32_t> c(20, 30, 4, 100);
  const Matrix<float> mask(20, 5);
  expect_refusal(ErrorCode::InvalidArgument, "where_positive is 20 x 5",
                 [&] { c.run(c.list.coordinates(), {.where_positive = mask.view()}); });
}

}  // namespace
}  // namespace tessera::host
