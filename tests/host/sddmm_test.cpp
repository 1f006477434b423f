#include "tessera/host/sddmm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/host/list_case.hpp"
#include "tessera/tests/support/trials.hpp"

namespace tessera::host {
namespace {

using test::ListCase;

// The types of the operands and of the results.
template <class In, class To>
struct Types {
  using T = In;
  using Out = To;
};

template <class Pair>
struct SddmmCase {
  using T = typename Pair::T;
  using Out = typename Pair::Out;
  Matrix<T> a, b;
  SddmmCase(std::int64_t x, std::int64_t y, std::int64_t k)
      : a(random_matrix<T>(x, k, 5)), b(random_matrix<T>(k, y, 6)) {}

  static std::vector<Out> old_numbers(std::size_t count) {
    std::vector<Out> numbers;
    for (std::size_t i = 0; i < count; ++i) numbers.push_back(Out(float(i % 7) - 3));
    return numbers;
  }
  template <class View>
  std::vector<Out> run(const View& pattern, std::size_t values, const SddmmOptions& options,
                       int threads = 2) const {
    std::vector<Out> out = old_numbers(values);
    sddmm<T>(pattern, a.view(), b.view(), std::span(out), *make_executor(threads), options);
    return out;
  }
  template <class View>
  std::vector<Out> run_turned(const View& pattern, std::size_t values,
                              const SddmmOptions& options) const {
    const Matrix<T> a_turned = test::turned(a), b_turned = test::turned(b);
    std::vector<Out> out = old_numbers(values);
    sddmm<T>(pattern, a_turned.view().transposed(), b_turned.view().transposed(), std::span(out),
             *make_executor(3), options);
    return out;
  }
  // `place_of(i)` is the row and column of value i.
  template <class View, class PlaceOf>
  void expect_right(const View& pattern, std::size_t values, const SddmmOptions& options,
                    PlaceOf&& place_of) const {
    const std::vector<Out> got = run(pattern, values, options), old = old_numbers(values);
    for (std::size_t i = 0; i < values; ++i) {
      const auto [row, col] = place_of(i);
      double sum = 0, size = 0;
      for (std::int64_t k = 0; k < a.cols(); ++k) {
        const double term = double(float(a(row, k))) * double(float(b(k, col)));
        sum += term;
        size += std::abs(term);
      }
      const double before = options.beta == 0 ? 0 : options.beta * double(float(old[i]));
      ASSERT_NEAR(float(got[i]), options.alpha * sum + before,
                  (std::abs(options.alpha) * size + std::abs(before)) *
                          (2 * test::kRounding<Out> + 64 * 0x1p-24) +
                      1e-7)
          << "value " << i;
    }
    for (const int threads : {1, 5}) EXPECT_EQ(run(pattern, values, options, threads), got);
    EXPECT_EQ(run_turned(pattern, values, options), got);
  }
};

template <class Pair>
class Sddmm : public testing::Test {};
using AllPairs = testing::Types<Types<float, float>, Types<Half, Half>, Types<Half, float>,
                                Types<BFloat16, BFloat16>, Types<BFloat16, float>>;
TYPED_TEST_SUITE(Sddmm, AllPairs);

template <class Pair, class Index>
void expect_block_rows(BlockShape block, std::int64_t k, double density,
                       const SddmmOptions& options) {
  const sparse::Csr<float> pattern = sparse::random_pattern(240, 480, block, density, 3);
  const std::vector<Index> row_begin(pattern.row_begin.begin(), pattern.row_begin.end());
  const std::vector<Index> col(pattern.col.begin(), pattern.col.end());
  std::vector<std::int64_t> block_row;
  for (std::int64_t r = 0; r < pattern.block_rows(); ++r)
    block_row.resize(std::size_t(pattern.row_begin[std::size_t(r) + 1]), r);
  const auto place_of = [&](std::size_t i) {
    const auto place = std::int64_t(i) / block.area(), e = std::int64_t(i) % block.area();
    return std::pair{block_row[std::size_t(place)] * block.rows + e / block.cols,
                     col[std::size_t(place)] * block.cols + e % block.cols};
  };
  SddmmCase<Pair>(240, 480, k)
      .expect_right(CompressedRows<typename Pair::T, Index>{240, 480, block, row_begin, col, {}},
                    pattern.values.size(), options, place_of);
}

TYPED_TEST(Sddmm, OfBlockRowsAgreesWithDoublePrecision) {
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}, {16, 16}, {3, 5}})
    for (const std::int64_t k : {0, 1, 7, 64, 300})
      for (const SddmmOptions& options :
           {SddmmOptions{}, {.beta = 1}, {.alpha = -2}, {.alpha = 0.5f, .beta = 3}}) {
        if (tessera::test::kIsSanitized && k == 300) continue;
        SCOPED_TRACE(testing::Message() << block.rows << "x" << block.cols << ", k " << k
                                        << ", alpha " << options.alpha);
        expect_block_rows<TypeParam, std::int32_t>(block, k, 0.03, options);
      }
  expect_block_rows<TypeParam, std::int64_t>({1, 1}, 20, 0.2, {});
  expect_block_rows<TypeParam, std::int64_t>({8, 8}, 20, 1.0, {.beta = -1});
  expect_block_rows<TypeParam, std::int32_t>({4, 4}, 20, 0.0, {});
}

TYPED_TEST(Sddmm, OfListsAgreesWithDoublePrecision) {
  using T = typename TypeParam::T;
  const ListCase<T, std::int64_t> list(90, 700, 6000);
  const auto rows = list.by_row(), columns = list.by_column();
  const auto row_begin = rows.positions(rows.row, 90),
             col_begin = columns.positions(columns.col, 700);
  for (const std::int64_t k : {1, 33, 300})
    for (const SddmmOptions& options : {SddmmOptions{}, {.beta = 1}, {.alpha = 0.5f, .beta = 3}}) {
      if (tessera::test::kIsSanitized && k == 300) continue;
      SCOPED_TRACE(k);
      const SddmmCase<TypeParam> c(90, 700, k);
      for (const auto* one : {&list, &rows, &columns})
        c.expect_right(one->coordinates(), 6000, options, [&](std::size_t i) {
          return std::pair{std::int64_t(one->row[i]), std::int64_t(one->col[i])};
        });
      c.expect_right(CompressedColumns<T, std::int64_t>{90, 700, col_begin, columns.row, {}}, 6000,
                     options, [&](std::size_t i) {
                       return std::pair{std::int64_t(columns.row[i]), std::int64_t(columns.col[i])};
                     });
      const CompressedRows<T, std::int64_t> compressed{90, 700, {1, 1}, row_begin, rows.col, {}};
      EXPECT_EQ(c.run(rows.coordinates(), 6000, options), c.run(compressed, 6000, options));
    }
}

template <class Damage>
void expect_refused(ErrorCode code, const char* part, Damage&& damage) {
  ListCase<float, std::int32_t> list(20, 30, 50);
  Matrix<float> a(20, 4), b(4, 30);
  std::vector<float> out(50, 7.0f);
  Coordinates<float> pattern = list.coordinates();
  MatrixView<const float> b_view = std::as_const(b).view();
  std::span<float> out_view = out;
  damage(list, pattern, b_view, out_view);
  try {
    sddmm<float>(pattern, std::as_const(a).view(), b_view, out_view, *make_executor(2));
    ADD_FAILURE() << "was taken, not refused with: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    EXPECT_EQ(out, std::vector<float>(50, 7.0f));
  }
}

TEST(SddmmArguments, AreRefusedIfTheyDoNotBelongTogether) {
  expect_refused(ErrorCode::BadInput, "place 3 is in row 20",
                 [](auto& list, auto&...) { list.row[3] = 20; });
  expect_refused(ErrorCode::BadInput, "place 3 is in column -2",
                 [](auto& list, auto&...) { list.col[3] = -2; });
  expect_refused(ErrorCode::InvalidArgument, "B 4 x 29",
                 [](auto&, auto&, auto& b, auto&) { b.cols = 29; });
  expect_refused(ErrorCode::InvalidArgument, "B 3 x 30",
                 [](auto&, auto&, auto& b, auto&) { b.rows = 3; });
  expect_refused(ErrorCode::InvalidArgument, "space for 49 numbers",
                 [](auto&, auto&, auto&, auto& out) { out = out.first(49); });
  expect_refused(ErrorCode::InvalidArgument, "shares memory with the operand B",
                 [](auto&, auto&, auto& b, auto& out) { b.data = out.data(); });
}

}  // namespace
}  // namespace tessera::host
