#include <gtest/gtest.h>

#include "tessera/sparse/block_stats.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/restrict.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::sparse {
namespace {

using test::draw;
using test::raises;
using test::random_dense;

TEST(WithBlock, MergesADrawingAndFillsTheRestWithZeros) {
  const Csr<float> merged = with_block(draw({"1..2..",  //
                                             ".....3",  //
                                             "......",  //
                                             ".....4"}),
                                       {2, 3});
  EXPECT_EQ(merged.row_begin, (std::vector<std::int64_t>{0, 2, 3}));
  EXPECT_EQ(merged.col, (std::vector<std::int32_t>{0, 1, 1}));
  EXPECT_EQ(merged.values, (std::vector<float>{1, 0, 0, 0, 0, 0,  //
                                               2, 0, 0, 0, 0, 3,  //
                                               0, 0, 0, 0, 0, 4}));
}

TEST(WithBlock, SplitsABlockAndStoresItsZeros) {
  const Csr<float> block{2, 3, {2, 3}, {0, 1}, {0}, {1, 0, 2, 3, 4, 0}};
  EXPECT_EQ(with_block(block, {1, 1}), draw({"102", "340"}));
}

TEST(WithBlock, LeavesTheSameBlocksAlone) {
  const auto m = draw({"1..2", ".3.."});
  EXPECT_EQ(with_block(m, {1, 1}), m);
}

TEST(WithBlock, RefusesAnIncompleteBlockOnRequestAndNamesIt) {
  const auto m = draw({"12....",  //
                       "34..5."});
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"2 x 2", "block row 0, block column 2", "1 of 4 parts"},
                     [&m] { with_block(m, {2, 2}, Incomplete::Refuse); }));
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"block row 0, block column 0", "3 of 4 parts"},
                     [] { with_block(draw({"12", "3."}), {2, 2}, Incomplete::Refuse); }));
  EXPECT_NO_THROW(with_block(draw({"12..", "34.."}), {2, 2}, Incomplete::Refuse));
}

TEST(WithBlock, RefusesSidesThatDoNotFit) {
  const auto m =
      with_block(draw({"1.....", "......", "......", "......", "......", "......"}), {2, 2});
  constexpr auto kWrong = ErrorCode::InvalidArgument;
  EXPECT_TRUE(raises(kWrong, {"2 x 2", "3 x 3"}, [&m] { with_block(m, {3, 3}); }));
  EXPECT_TRUE(raises(kWrong, {"2 x 2", "2 x 3"}, [&m] { with_block(m, {2, 3}); }));
  EXPECT_TRUE(
      raises(kWrong, {"6 rows", "multiple of the 4 rows"}, [&m] { with_block(m, {4, 2}); }));
  EXPECT_TRUE(raises(kWrong, {"0 rows"}, [&m] { with_block(m, {0, 2}); }));
}

bool divides(BlockShape small, BlockShape large) {
  return large.rows % small.rows == 0 && large.cols % small.cols == 0;
}

// `dense` holds no zeros in its blocks of `from`, so what is stored afterwards is known exactly.
void expect_same_matrix_in(const Matrix<double>& dense, BlockShape from, BlockShape to) {
  SCOPED_TRACE(testing::Message() << from.rows << " x " << from.cols << " to " << to.rows << " x "
                                  << to.cols);
  const Csr<double> m = from_dense<double>(dense.view(), from);
  const Csr<double> changed = with_block(m, to);
  check(changed);
  EXPECT_EQ(to_dense(changed), dense);
  if (divides(to, from) || divides(from, to)) {
    EXPECT_EQ(changed, from_dense<double>(dense.view(), to));
  }
  if (divides(to, from)) {
    EXPECT_EQ(with_block(changed, from, Incomplete::Refuse), m);
  }
}

TEST(WithBlock, KeepsTheDenseMatrixThroughEveryPairOfBlocks) {
  constexpr std::uint64_t kSeed = 21;
  Random random(kSeed);
  const std::vector<BlockShape> shapes = {{1, 1}, {1, 3}, {2, 1},  {2, 3}, {4, 1},
                                          {4, 6}, {8, 9}, {1, 18}, {8, 18}};
  for (const double density : {0.0, 0.1, 0.6, 1.0})
    for (const BlockShape from : shapes)
      for (const BlockShape to : shapes)
        if (to.cols % from.cols == 0 || from.cols % to.cols == 0)
          expect_same_matrix_in(random_dense(16, 36, from, density, random), from, to);
}

TEST(Inflate, MakesEachElementADenseBlock) {
  const Csr<float> m = inflate(draw({"1.", ".2"}), {2, 3});
  EXPECT_EQ(with_block(m, {1, 1}), draw({"111...",  //
                                         "111...",  //
                                         "...222",  //
                                         "...222"}));
  EXPECT_EQ(m.blocks(), 2);
  check(m);
}

TEST(Inflate, RefusesBlocksAndSizesThatCannotBe) {
  const auto m = draw({"1.", ".2"});
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"0 x 3"}, [&m] { inflate(m, {0, 3}); }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"2 x 2"},
                     [&m] { inflate(with_block(m, {2, 2}), {2, 2}); }));
  EXPECT_TRUE(raises(ErrorCode::LimitExceeded, {"rows"}, [&m] { inflate(m, {INT64_MAX, 1}); }));
}

TEST(InWholeBlocks, PadsAndInsideTakesThePaddingAwayAgain) {
  const auto m = draw({"1.3", "...", "..5"});
  const Csr<float> padded = in_whole_blocks(m, {2, 2});
  EXPECT_EQ(padded.rows, 4);
  EXPECT_EQ(padded.cols, 4);
  EXPECT_EQ(padded.blocks(), 3);
  const Csr<float> back = inside(padded, 3, 3);
  EXPECT_EQ(to_dense(back).elements(), to_dense(m).elements());
  EXPECT_EQ(inside(m, 3, 3), m);
}

TEST(StatsOfGroups, AreThoseOfTheMatricesOnOneDiagonal) {
  const auto first = draw({"12.", "..."}), second = draw({".4.", "567"});
  const std::vector<CheckedCsr<float>> both{checked(first), checked(second)};
  EXPECT_EQ(stats_of_groups(both), pattern_stats(draw({"12....", "......", "....4.", "...567"})));
  EXPECT_EQ(stats_of_groups(std::span(both).first(1)), pattern_stats(first));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"no matrix"}, [] { stats_of_groups({}); }));
  EXPECT_EQ(empty_block_rows(first), 1);
  EXPECT_EQ(empty_block_rows(second), 0);
}

}  // namespace
}  // namespace tessera::sparse
