#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "tessera/arrays/row_sparse/cast_storage.hpp"
#include "tessera/sparse/convert.hpp"
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

TEST(RowSparse, RSP_14_DuplicatesOfAnImportAreSummed) {
  const sparse::Csr<float> given{
      3, 3, {}, {0, 2, 3, 7}, {0, 2, 2, 0, 1, 2, 1}, {1, 2, 3, 4, 5, 6, 1}};
  EXPECT_EQ(sort_columns(given, sparse::Duplicates::Sum), draw({"1.2", "..3", "466"}));
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
