#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "tessera/arrays/row_sparse/operators.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/arrays/row_sparse/arrays_for_tests.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::arrays {
namespace {

using test::dense;
using test::Dimensions;
using test::draw;
using test::ones;
using test::Rows;

const auto kThreeRows = test::row_sparse<float>({5, 2}, {0, 2, 3}, {1, 2, 3, 4, 5, 6});

template <class T>
Array<T> dotted(const Array<T>& a, const Array<T>& b, DotForm form = {}) {
  Fallbacks none(Fallbacks::Mode::Strict);
  return dot(a, b, form, none);
}

TEST(RowSparse, RSP_01_KeepsRowsWithAnyNonZeroWhole) {
  const auto rows = to_row_sparse(dense({5, 3}, {1, 2, 3, 0, 0, 0, 4, 0, 5, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(rows, test::row_sparse<float>({5, 3}, {0, 2}, {1, 2, 3, 4, 0, 5}));
}

TEST(RowSparse, RSP_02_IsMadeFromStoredRows) {
  const auto rows = row_sparse(dense({2, 2}, {1, 2, 3, 4}), {1, 4}, Dimensions{6, 2});
  EXPECT_EQ(to_dense(rows), dense({6, 2}, {0, 0, 1, 2, 0, 0, 0, 0, 3, 4, 0, 0}));
  EXPECT_EQ(row_sparse(dense({2, 2}, {1, 2, 3, 4}), {1, 4}).shape, (Dimensions{5, 2}));
}

TEST(RowSparse, RSP_03_RetainKeepsTheRowsAskedFor) {
  const auto kept = retain<float, std::int64_t>(kThreeRows, Rows{0, 1});
  EXPECT_EQ(kept.rows, (Rows{0, 1}));
  EXPECT_EQ(to_dense(kept), dense({5, 2}, {1, 2, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(RowSparse, RSP_04_RetainTakesAnyKindOfIndex) {
  const auto array = test::row_sparse<float>({4, 2}, {0, 1, 3}, {1, 2, 3, 4, 5, 6});
  const auto expected = test::row_sparse<float>({4, 2}, {0, 3}, {1, 2, 5, 6});
  EXPECT_EQ((retain<float, std::int64_t>(array, Rows{0, 3})), expected);
  EXPECT_EQ((retain<float, std::int32_t>(array, std::vector<std::int32_t>{0, 3})), expected);
  EXPECT_EQ((retain<float, float>(array, std::vector<float>{0, 3})), expected);
  EXPECT_EQ((retain<float, std::int64_t>(array, Rows{})), row_sparse_zeros<float>({4, 2}));
  EXPECT_EQ((retain<float, std::int64_t>(row_sparse_zeros<float>({4, 2}), Rows{1})),
            test::row_sparse<float>({4, 2}, {1}, {0, 0}));
}

TEST(RowSparse, RSP_05_CastsThereAndBack) {
  const Array<float> start = ones(2, 2);
  const Array<float> rows = cast_storage(start, Storage::RowSparse);
  EXPECT_EQ(storage_of(rows), Storage::RowSparse);
  EXPECT_EQ(cast_storage(rows, Storage::Dense), start);
}

TEST(RowSparse, RSP_06_CopiesKeepTheStorageOfTheDestination) {
  Array<float> e = row_sparse_zeros<float>({2, 2}), f = e, h = kThreeRows;
  const Array<float> g = ones(2, 2);
  EXPECT_TRUE(copy_to(g, e));
  EXPECT_TRUE(copy_to(g, f));
  for (const Array<float>& array : {e, f}) {
    EXPECT_EQ(storage_of(array), Storage::RowSparse);
    EXPECT_EQ(cast_storage(array, Storage::Dense), g);
  }
  EXPECT_EQ(storage_of(g), Storage::Dense);
  EXPECT_FALSE(copy_to(h, h));
  EXPECT_EQ(h, Array<float>(kThreeRows));
}

TEST(RowSparse, RSP_07_DotOfATransposedCsrGivesTheRowsItTouches) {
  const sparse::Csr<float> csr{3, 5, {}, {0, 2, 2, 3}, {0, 2, 1}, {7, 8, 9}};
  const auto result = dotted<float>(csr, ones(3, 2), {.transpose_a = true});
  EXPECT_EQ(result, Array<float>(test::row_sparse<float>({5, 2}, {0, 1, 2}, {7, 7, 9, 9, 8, 8})));
  const auto as_dense = dotted<float>(csr, ones(3, 2), {.transpose_a = true, .dense_result = true});
  EXPECT_EQ(as_dense, Array<float>(dense({5, 2}, {7, 7, 9, 9, 8, 8, 0, 0, 0, 0})));
}

TEST(RowSparse, RSP_08_DotOfACsrIsDense) {
  const sparse::Csr<float> csr{3, 4, {}, {0, 2, 2, 3}, {0, 2, 1}, {7, 8, 9}};
  EXPECT_EQ(dotted<float>(csr, ones(4, 1)), Array<float>(dense({3, 1}, {15, 0, 9})));
}

TEST(RowSparse, RSP_09_TheGradientOfALayerHasTheRowsOfItsInput) {
  const sparse::Csr<float> x = draw({"1."});
  EXPECT_EQ(dotted<float>(x, dense({2, 3}, {3, 4, 5, 6, 7, 8})),
            Array<float>(dense({1, 3}, {3, 4, 5})));
  EXPECT_EQ(dotted<float>(x, ones(1, 3), {.transpose_a = true}),
            Array<float>(test::row_sparse<float>({2, 3}, {0}, {1, 1, 1})));
}

TEST(RowSparse, RSP_14_DuplicatesOfAnImportAreSummed) {
  const sparse::Csr<float> given{
      3, 3, {}, {0, 2, 3, 7}, {0, 2, 2, 0, 1, 2, 1}, {1, 2, 3, 4, 5, 6, 1}};
  EXPECT_EQ(sort_columns(given, sparse::Duplicates::Sum), draw({"1.2", "..3", "466"}));
}

TEST(RowSparse, RSP_16_DotGivesTheSameBitsTwice) {
  Random random(/*seed=*/16);
  sparse::Csr<float> csr = sparse::random_pattern(31, 47, {1, 1}, 0.3, 16);
  for (float& v : csr.values) v = float(random.unit());
  DenseArray<float> b{{31, 5}, {}};
  for (int i = 0; i < 31 * 5; ++i) b.values.push_back(float(random.unit()));
  EXPECT_EQ(dotted<float>(csr, b, {.transpose_a = true}),
            dotted<float>(csr, b, {.transpose_a = true}));
  EXPECT_NE(dotted<float>(csr, b, {.transpose_a = true}),
            dotted<float>(sparse::transpose(csr), b, {.dense_result = true}));
}

TEST(RowSparse, RSP_17_SumsOverTheAxesOfACsr) {
  const Array<float> csr = draw({"12.", "3.1", "41."});
  Fallbacks strict(Fallbacks::Mode::Strict), log;
  EXPECT_EQ(sum(csr, {.axis = 0}, strict), dense({3}, {8, 3, 1}));
  EXPECT_EQ(sum(csr, {.axis = 1}, strict), dense({3}, {3, 4, 5}));
  EXPECT_EQ(sum(csr, {}, strict), dense({1}, {12}));
  EXPECT_EQ(sum(csr, {.axis = 1, .mean = true}, strict), dense({3}, {1, 4 / 3.0f, 5 / 3.0f}));
  EXPECT_EQ(sum(csr, {.axis = 0, .keep_dimensions = true}, log), dense({1, 3}, {8, 3, 1}));
  EXPECT_EQ(log.seen(), (std::vector<Fallback>{{"sum(csr)", 1, Bytes(36)}}));
}

TEST(RowSparse, RSP_18_SquareSumsOfRows) {
  const auto rows = test::row_sparse<float>({5, 2}, {1, 3}, {1, 2, 3, 4});
  EXPECT_EQ(square_sum(rows), dense({5}, {0, 5, 0, 25, 0}));
  EXPECT_EQ(square_sum_kept(rows), test::row_sparse<float>({5, 1}, {1, 3}, {5, 25}));
}

TEST(RowSparse, RSP_19_NormOfEveryStorage) {
  // The printed figure is sqrt(30) as a float.
  const Array<float> square = dense({2, 2}, {1, 2, 3, 4});
  for (const Storage to : {Storage::Dense, Storage::RowSparse, Storage::Csr})
    EXPECT_EQ(norm(cast_storage(square, to)), 5.47722578f);
  EXPECT_NEAR(norm<double>(dense<double>({2}, {3e300, 4e300})), 5e300, 1e285);
}

TEST(RowSparse, FillKeepsTheStorageAndStoresNothingForZero) {
  Array<float> rows = kThreeRows;
  fill(rows, 2.0f);
  EXPECT_EQ(cast_storage(rows, Storage::Dense),
            Array<float>(DenseArray<float>{{5, 2}, std::vector<float>(10, 2)}));
  fill(rows, 0.0f);
  EXPECT_EQ(rows, Array<float>(row_sparse_zeros<float>({5, 2})));
}

TEST(RowSparse, HasAnyRankAndZeroDimensions) {
  Random random(/*seed=*/3);
  for (const Dimensions& shape :
       {Dimensions{7}, {3, 4, 5}, {5, 0}, {0, 3}, {1, 1}, {0}, {2, 1, 3, 2}})
    for (const double density : {0.0, 0.5, 1.0}) {
      const auto start = test::random_rows<double>(shape, density, random);
      const auto rows = to_row_sparse(start);
      check(rows);
      EXPECT_EQ(to_dense(rows), start) << rows;
      EXPECT_EQ(cast<double>(cast<float>(rows)), rows);
    }
}

TEST(RowSparse, ReachesACsrWithItsStoredZerosAndComesBack) {
  const auto rows = test::row_sparse<float>({4, 3}, {1, 3}, {1, 0, 2, 0, 0, 0});
  EXPECT_EQ(to_csr(rows), draw({"...", "102", "...", "000"}));
  EXPECT_EQ(to_row_sparse(to_csr(rows)), rows);
  EXPECT_EQ(to_row_sparse(draw({"...", "1.2"})), test::row_sparse<float>({2, 3}, {1}, {1, 0, 2}));
}

TEST(RowSparse, KeepsNaNAndDropsNegativeZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(to_row_sparse(dense({3}, {-0.0f, nan, 1})).rows, (Rows{1, 2}));
}

TEST(RowSparse, PrintsOneLine) {
  std::ostringstream out;
  out << kThreeRows;
  EXPECT_EQ(out.str(), "row-sparse array 5 x 2, 3 rows stored");
}

}  // namespace
}  // namespace tessera::arrays
