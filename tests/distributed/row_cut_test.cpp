#include "tessera/distributed/row_cut.hpp"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::distributed {
namespace {

TEST(RowCut, CutsBehindAHeavyRow) {
  const std::vector<std::int64_t> blocks{6, 1, 1, 2, 2};
  EXPECT_EQ(cut_evenly(blocks, 5, 1, 2), (RowCut{{0, 1, 5}}));
  EXPECT_EQ(cut_evenly(blocks, 18, 4, 2), (RowCut{{0, 4, 18}}));  // the last block is cut off
}

TEST(RowCut, GivesNoRunMoreThanItsShareAndHalfARowOnEitherSide) {
  for (const int ranks : {1, 2, 3, 7, 16}) {
    const std::vector<std::int64_t> blocks = [] {
      std::vector<std::int64_t> counts;
      for (const std::int64_t n : sparse::random_choice(1000, 90, 7)) counts.push_back(n % 13);
      return counts;
    }();
    std::int64_t all = 0;
    for (const std::int64_t n : blocks) all += n;
    const RowCut cut = cut_evenly(blocks, 90, 1, ranks);
    check(cut, 90, 1, ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      std::int64_t own = 0;
      for (std::int64_t r = cut.of(rank).begin; r < cut.of(rank).end; ++r)
        own += blocks[std::size_t(r)];
      EXPECT_NEAR(double(own), double(all) / ranks, 12) << rank << " of " << ranks;
    }
  }
}

TEST(RowCut, CountsRowsWhereThereAreNoBlocks) {
  EXPECT_EQ(cut_evenly(std::vector<std::int64_t>(6), 12, 2, 3), (RowCut{{0, 4, 8, 12}}));
}

TEST(RowCut, LeavesRanksWithoutRowsWhereThereAreTooFew) {
  const RowCut cut = cut_evenly(std::vector<std::int64_t>{5, 5}, 2, 1, 5);
  check(cut, 2, 1, 5);
  EXPECT_EQ(cut.rows(), 2);
}

TEST(RowCut, IsRefusedUnlessItIsOneOfTheLayer) {
  const RowCut cut{{0, 4, 9}};
  check(cut, 9, 4, 2);
  for (const auto& [rows, block, ranks] : {std::tuple{9, 4, 3}, {10, 4, 2}, {9, 3, 2}})
    EXPECT_NE(test::refusal([&, r = rows, b = block, n = ranks] { check(cut, r, b, n); }), "");
  EXPECT_NE(test::refusal([] { check(RowCut{{0, 8, 4, 9}}, 9, 4, 3); }), "");
  EXPECT_NE(test::refusal([] { cut_evenly({}, 1, 1, 0); }), "");
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
