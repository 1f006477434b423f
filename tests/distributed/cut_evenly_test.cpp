#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "tessera/distributed/cut.hpp"
#include "tessera/sparse/part.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::distributed {
namespace {

TEST(RowCut, CutsBehindAHeavyRow) {
  const std::vector<std::int64_t> row_begin{0, 6, 7, 8, 10, 12};
  EXPECT_EQ(cut_evenly(row_begin, 5, 1, 2), (RowCut{{0, 1, 5}}));
  EXPECT_EQ(cut_evenly(row_begin, 18, 4, 2), (RowCut{{0, 4, 18}}));  // the last block is cut off
}

TEST(RowCut, GivesNoRunMoreThanItsShareAndHalfARowOnEitherSide) {
  for (const int ranks : {1, 2, 3, 7, 16}) {
    std::vector<std::int64_t> row_begin{0};
    for (const std::int64_t n : sparse::random_choice(1000, 90, 7))
      row_begin.push_back(row_begin.back() + n % 13);
    const RowCut cut = cut_evenly(row_begin, 90, 1, ranks);
    check(cut, 90, 1, ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      const Range run = cut.of(rank);
      const std::int64_t own = row_begin[std::size_t(run.end)] - row_begin[std::size_t(run.begin)];
      EXPECT_NEAR(double(own), double(row_begin.back()) / ranks, 12) << rank << " of " << ranks;
    }
  }
}

TEST(RowCut, CountsRowsWhereThereAreNoBlocks) {
  EXPECT_EQ(cut_evenly(std::vector<std::int64_t>(7), 12, 2, 3), (RowCut{{0, 4, 8, 12}}));
}

TEST(RowCut, LeavesRanksWithoutRowsWhereThereAreTooFew) {
  const RowCut cut = cut_evenly(std::vector<std::int64_t>{0, 5, 10}, 2, 1, 5);
  check(cut, 2, 1, 5);
  EXPECT_EQ(cut.rows(), 2);
}

TEST(RowCut, IsRefusedUnlessItIsOneOfTheLayer) {
  const RowCut cut{{0, 4, 9}};
  check(cut, 9, 4, 2);
  for (const auto& [rows, block, ranks] : {std::tuple{9, 4, 3}, {10, 4, 2}, {9, 3, 2}})
    EXPECT_NE(test::refusal([&, r = rows, b = block, n = ranks] { check(cut, r, b, n); }), "");
  EXPECT_NE(test::refusal([] { check(RowCut{{0, 8, 4, 9}}, 9, 4, 3); }), "");
  EXPECT_NE(test::refusal([] { cut_evenly(std::vector<std::int64_t>{0}, 1, 1, 0); }), "");
  EXPECT_NE(test::refusal([] { cut_evenly(std::vector<std::int64_t>{3, 1}, 2, 1, 1); }), "");
}

TEST(RowCut, RowsOfAMatrixJoinToTheMatrix) {
  const auto matrix = sparse::random_pattern(24, 12, {4, 3}, 0.5, 5);
  const sparse::Csr<float> upper = rows_of(matrix, {0, 8}), lower = rows_of(matrix, {8, 24});
  EXPECT_EQ(upper.rows + lower.rows, 24);
  std::vector<float> values = upper.values;
  values.insert(values.end(), lower.values.begin(), lower.values.end());
  EXPECT_EQ(values, matrix.values);
  EXPECT_EQ(lower.row_begin.back(), lower.blocks());
}

}  // namespace
}  // namespace tessera::distributed
