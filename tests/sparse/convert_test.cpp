#include "tessera/sparse/convert.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/sparse/check.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::sparse {
namespace {

using test::draw;
using test::raises;
using test::random_dense;

const std::vector<std::string> kPicture = {"1..2.3",  //
                                           "......",  //
                                           ".4....",  //
                                           "5.6..7"};

TEST(Convert, ListsADrawingRowByRow) {
  const Coo<float> coo = to_coo(draw(kPicture));
  EXPECT_EQ(coo.row, (std::vector<std::int32_t>{0, 0, 0, 2, 3, 3, 3}));
  EXPECT_EQ(coo.col, (std::vector<std::int32_t>{0, 3, 5, 1, 0, 2, 5}));
  EXPECT_EQ(coo.values, (std::vector<float>{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(coo.rows, 4);
  EXPECT_EQ(coo.cols, 6);
}

TEST(Convert, SortsADrawingByColumns) {
  const Csc<float> csc = to_csc(draw(kPicture));
  EXPECT_EQ(csc.col_begin, (std::vector<std::int64_t>{0, 2, 3, 4, 5, 5, 7}));
  EXPECT_EQ(csc.row, (std::vector<std::int32_t>{0, 3, 2, 3, 0, 0, 3}));
  EXPECT_EQ(csc.values, (std::vector<float>{1, 5, 4, 6, 2, 3, 7}));
}

TEST(Convert, TransposesADrawing) {
  EXPECT_EQ(transpose(draw(kPicture)), draw({"1..5",  //
                                             "..4.",  //
                                             "...6",  //
                                             "2...",  //
                                             "....",  //
                                             "3..7"}));
}

TEST(Convert, TellsWhereTheTransposeTakesItsValuesFrom) {
  const Csr<float> elements{2, 2, {1, 1}, {0, 2, 3}, {0, 1, 0}, {10, 20, 30}};
  EXPECT_EQ(transpose_order(elements), (std::vector<std::int64_t>{0, 2, 1}));
  const Csr<float> block{2, 3, {2, 3}, {0, 1}, {0}, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(transpose_order(block), (std::vector<std::int64_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_TRUE(transpose_order(Csr<float>{}).empty());
}

TEST(Convert, StoresABlockColumnByColumnInACsc) {
  const Csr<float> m{2, 3, {2, 3}, {0, 1}, {0}, {1, 2, 3, 4, 5, 6}};
  const Csc<float> csc = to_csc(m);
  EXPECT_EQ(csc.values, (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(csc.block, (BlockShape{2, 3}));
  const Csr<float> t = transpose(m);
  EXPECT_EQ(t.values, csc.values);
  EXPECT_EQ(t.block, (BlockShape{3, 2}));
}

TEST(Convert, SortsBlocksThatComeInAnyOrder) {
  const Coo<float> coo{4,
                       6,
                       {2, 3},
                       {1, 0, 0},
                       {1, 1, 0},
                       {13, 14, 15, 16, 17, 18,  //
                        7, 8, 9, 10, 11, 12,     //
                        1, 2, 3, 4, 5, 6}};
  const Csr<float> csr = to_csr(coo);
  EXPECT_EQ(csr.row_begin, (std::vector<std::int64_t>{0, 2, 3}));
  EXPECT_EQ(csr.col, (std::vector<std::int32_t>{0, 1, 1}));
  std::vector<float> ascending(18);
  std::iota(ascending.begin(), ascending.end(), 1.0f);
  EXPECT_EQ(csr.values, ascending);
}

TEST(Convert, PutsColumnsInOrder) {
  Csr<float> m = draw(kPicture);
  std::reverse(m.col.begin(), m.col.begin() + 3);
  std::reverse(m.values.begin(), m.values.begin() + 3);
  EXPECT_THROW(check(m), Error);
  EXPECT_EQ(sort_columns(m), draw(kPicture));
}

TEST(Convert, RefusesDuplicatesWithTheirPlace) {
  const Coo<float> coo{4, 6, {1, 1}, {3, 1, 3}, {2, 2, 2}, {1, 2, 3}};
  EXPECT_TRUE(raises(ErrorCode::BadInput,
                     {"block row 3, block column 2 is given twice", "positions 0 and 2"},
                     [&coo] { to_csr(coo); }));
  const Csr<float> csr{1, 6, {1, 1}, {0, 3}, {5, 2, 5}, {1, 2, 3}};
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"block row 0 holds block column 5 twice"},
                     [&csr] { sort_columns(csr); }));
}

TEST(Convert, RefusesIllegalInputEverywhere) {
  Csr<float> m = draw(kPicture);
  m.col[6] = 6;
  const std::vector<std::string> words = {"block row 3", "block column 6"};
  constexpr auto kBad = ErrorCode::BadInput;
  EXPECT_TRUE(raises(kBad, words, [&m] { to_coo(m); }));
  EXPECT_TRUE(raises(kBad, words, [&m] { to_csc(m); }));
  EXPECT_TRUE(raises(kBad, words, [&m] { transpose(m); }));
  EXPECT_TRUE(raises(kBad, words, [&m] { transpose_order(m); }));
  EXPECT_TRUE(raises(kBad, words, [&m] { sort_columns(m); }));
  EXPECT_TRUE(raises(kBad, words, [&m] { with_block(m, {2, 2}); }));
  EXPECT_TRUE(raises(kBad, words, [&m] { inflate(m, {2, 2}); }));
  EXPECT_TRUE(raises(kBad, words, [&m] { with_shape(m, 8, 8); }));
  EXPECT_TRUE(raises(kBad, words, [&m] { cast<double>(m); }));
  EXPECT_TRUE(raises(kBad, words, [&m] { to_dense(m); }));
  EXPECT_TRUE(raises(kBad, words, [&m] { pattern_stats(m); }));
  EXPECT_TRUE(raises(kBad, {"row[0]"},
                     [] { to_csr(Csc<float>{4, 6, {1, 1}, {0, 1, 1, 1, 1, 1, 1}, {4}, {1}}); }));
}

struct Case {
  std::int64_t rows, cols;
  BlockShape block;
  double density;
};

// Sizes on the edges: none, one, prime numbers of blocks, non-square blocks, full and empty.
const std::vector<Case> kCases = {
    {0, 0, {1, 1}, 0.5},  {0, 5, {1, 1}, 0.5},  {5, 0, {1, 1}, 0.5}, {1, 1, {1, 1}, 1},
    {1, 7, {1, 1}, 0.5},  {7, 1, {1, 1}, 0.5},  {13, 17, {1, 1}, 0}, {13, 17, {1, 1}, 0.2},
    {13, 17, {1, 1}, 1},  {8, 18, {2, 3}, 0.4}, {8, 18, {2, 3}, 1},  {20, 28, {4, 4}, 0.3},
    {9, 11, {3, 1}, 0.5}, {11, 9, {1, 3}, 0.5}, {6, 6, {6, 6}, 1},   {64, 48, {16, 16}, 0.3}};

TEST(Convert, AgreesWithTheDenseMatrixInEveryFormat) {
  constexpr std::uint64_t kSeed = 11;
  Random random(kSeed);
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.rows << " x " << c.cols << " in " << c.block.rows << " x "
                                    << c.block.cols << ", density " << c.density);
    const Matrix<double> dense = random_dense(c.rows, c.cols, c.block, c.density, random);
    const Csr<double> csr = from_dense<double>(dense.view(), c.block);
    check(csr);
    EXPECT_EQ(to_dense(csr), dense);

    const Csc<double> csc = to_csc(csr);
    check(csc);
    EXPECT_EQ(to_csr(csc), csr);
    const Csr<double> transposed = transpose(csr);
    check(transposed);
    EXPECT_EQ(transposed, from_dense(dense.view().transposed(), c.block.transposed()));
    EXPECT_EQ(transpose(transposed), csr);
    std::vector<double> moved;
    for (const std::int64_t from : transpose_order(csr))
      moved.push_back(csr.values[std::size_t(from)]);
    EXPECT_EQ(moved, transposed.values);

    const Coo<double> coo = to_coo(csr);
    check(coo);
    EXPECT_EQ(to_csr(coo), csr);
    EXPECT_EQ(sort_columns(csr), csr);
  }
}

TEST(Convert, SortsShuffledBlocksLikeTheDenseMatrix) {
  constexpr std::uint64_t kSeed = 12;
  Random random(kSeed);
  for (const Case& c : kCases) {
    const Csr<double> csr = from_dense<double>(
        random_dense(c.rows, c.cols, c.block, c.density, random).view(), c.block);
    Coo<double> coo = to_coo(csr);
    const std::int64_t area = coo.block.area();
    for (std::int64_t i = coo.blocks() - 1; i > 0; --i) {
      const std::int64_t j = random.below(i + 1);
      std::swap(coo.row[i], coo.row[j]);
      std::swap(coo.col[i], coo.col[j]);
      if (i != j)
        std::swap_ranges(&coo.values[i * area], &coo.values[i * area] + area,
                         &coo.values[j * area]);
    }
    check(coo);
    EXPECT_EQ(to_csr(coo), csr) << csr;
  }
}

// Lists long enough for the sort by parts and digits: every shape of rows and columns, one row, one
// column, sorted and shuffled, twins too, against a sort by the standard library.
struct Long {
  std::int64_t rows, cols, entries;
};

Coo<double> long_list(const Long& size, bool twins, Random& random) {
  Coo<double> coo{size.rows, size.cols, {}, {}, {}, {}};
  const std::int64_t places = size.rows * size.cols;
  for (std::int64_t i = 0; i < size.entries; ++i) {
    const std::int64_t gap = places / size.entries;
    const std::int64_t place = twins ? random.below(places) : i * gap + random.below(gap);
    coo.row.push_back(static_cast<std::int32_t>(place / size.cols));
    coo.col.push_back(static_cast<std::int32_t>(place % size.cols));
    coo.values.push_back(double(i));
  }
  for (std::int64_t i = size.entries - 1; i > 0; --i) {
    const std::int64_t j = random.below(i + 1);
    std::swap(coo.row[i], coo.row[j]);
    std::swap(coo.col[i], coo.col[j]);
    std::swap(coo.values[i], coo.values[j]);
  }
  return coo;
}

Csr<double> sorted_by_the_library(const Coo<double>& coo) {
  std::vector<std::int64_t> order(coo.row.size());
  std::iota(order.begin(), order.end(), 0);
  const auto place = [&](std::int64_t i) { return std::pair(coo.row[i], coo.col[i]); };
  std::ranges::stable_sort(order, {}, place);
  Csr<double> csr{coo.rows, coo.cols, {}, {}, {}, {}};
  csr.row_begin.assign(std::size_t(coo.rows) + 1, 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && place(order[i]) == place(order[i - 1])) {
      csr.values.back() += coo.values[order[i]];
      continue;
    }
    csr.col.push_back(coo.col[order[i]]);
    csr.values.push_back(coo.values[order[i]]);
    ++csr.row_begin[std::size_t(coo.row[order[i]]) + 1];
  }
  std::partial_sum(csr.row_begin.begin(), csr.row_begin.end(), csr.row_begin.begin());
  return csr;
}

TEST(Convert, SortsLongListsOfElementsByPartsAndDigits) {
  Random random(/*seed=*/31);
  for (const Long& size : {Long{1, 100'000, 5000},
                           {100'000, 1, 5000},
                           {300, 700, 40'000},
                           {100'003, 70'001, 90'000},
                           {2, 40'000, 70'000},
                           {3, 1'000'000'000, 4096},
                           {2'000'000, 2'147'483'647, 20'000}}) {
    const Coo<double> shuffled = long_list(size, false, random);
    const Csr<double> truth = sorted_by_the_library(shuffled);
    EXPECT_EQ(to_csr(shuffled), truth) << truth;
    EXPECT_EQ(to_csr(to_coo(truth)), truth);
    Coo<float> floats{size.rows, size.cols, {}, shuffled.row, shuffled.col, {}};
    floats.values.assign(shuffled.values.begin(), shuffled.values.end());
    EXPECT_EQ(to_csr(floats), cast<float>(truth));
  }
}

TEST(Convert, FindsTwinsInLongListsAndAddsThemInTheOrderGiven) {
  Random random(/*seed=*/32);
  const Coo<double> coo = long_list({50, 60, 20'000}, true, random);
  EXPECT_EQ(to_csr(coo, Duplicates::Sum), sorted_by_the_library(coo));
  EXPECT_TRUE(
      test::raises(ErrorCode::BadInput, {"is given twice", "positions"}, [&] { to_csr(coo); }));
}

TEST(FromDense, TakesNaNAndLeavesNegativeZeroOut) {
  Matrix<float> dense(1, 3);
  dense(0, 0) = -0.0f;
  dense(0, 2) = std::numeric_limits<float>::quiet_NaN();
  const Csr<float> m = from_dense<float>(dense.view(), {1, 1});
  ASSERT_EQ(m.col, (std::vector<std::int32_t>{2}));
  EXPECT_TRUE(std::isnan(m.values[0]));
}

TEST(FromDense, RefusesABlockThatDoesNotDivideTheMatrix) {
  const Matrix<float> dense(4, 6);
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"4 rows", "multiple of the 3 rows"},
                     [&] { from_dense<float>(dense.view(), {3, 3}); }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"0 columns"},
                     [&] { from_dense<float>(dense.view(), {1, 0}); }));
}

TEST(WithShape, AddsEmptyRowsAndColumns) {
  EXPECT_EQ(with_shape(draw({"1.", ".2"}), 3, 4), draw({"1...", ".2..", "...."}));
  EXPECT_EQ(with_shape(draw({"1.", ".2"}), 2, 2), draw({"1.", ".2"}));
  EXPECT_EQ(with_shape(Csr<float>{}, 2, 1), draw({".", "."}));
}

TEST(WithShape, RefusesToShrinkAndToCutBlocks) {
  const auto m = draw({"1.", ".2"});
  constexpr auto kWrong = ErrorCode::InvalidArgument;
  EXPECT_TRUE(raises(kWrong, {"1 x 2", "2 x 2"}, [&m] { with_shape(m, 1, 2); }));
  EXPECT_TRUE(raises(kWrong, {"2 x 1", "2 x 2"}, [&m] { with_shape(m, 2, 1); }));
  const auto blocks = with_block(m, {2, 2});
  EXPECT_TRUE(raises(kWrong, {"3 rows"}, [&blocks] { with_shape(blocks, 3, 4); }));
}

TEST(Cast, RoundsToNearestAndOverflowsToInfinity) {
  const Csr<double> m{1, 4, {1, 1}, {0, 4}, {0, 1, 2, 3}, {0.1, 1e300, -1e300, 0.5}};
  const Csr<float> f = cast<float>(m);
  EXPECT_EQ(f.values, (std::vector<float>{0.1f, INFINITY, -INFINITY, 0.5f}));
  EXPECT_EQ(f.col, m.col);
  EXPECT_EQ(cast<double>(f).values[0], static_cast<double>(0.1f));
  EXPECT_EQ(cast<double>(m), m);
}

TEST(PatternStats, CountsBlocksOfRowsAndColumns) {
  const PatternStats stats = pattern_stats(draw(kPicture));
  EXPECT_EQ(stats.row_counts, (std::vector<std::int32_t>{3, 0, 1, 3}));
  EXPECT_EQ(stats.col_counts, (std::vector<std::int32_t>{2, 1, 1, 1, 0, 2}));
  EXPECT_EQ(stats.blocks(), 7);
  EXPECT_TRUE(stats.block.is_element());
  const PatternStats in_blocks = pattern_stats(with_block(draw(kPicture), {2, 3}));
  EXPECT_EQ(in_blocks.row_counts, (std::vector<std::int32_t>{2, 2}));
  EXPECT_EQ(in_blocks.col_counts, (std::vector<std::int32_t>{2, 2}));
  EXPECT_EQ(in_blocks.block, (BlockShape{2, 3}));
}

TEST(Duplicates, AreSummedInTheOrderTheyAreGivenWhenAsked) {
  const Coo<float> coo{2, 4, {1, 2}, {1, 0, 1, 1}, {0, 1, 1, 0}, {1, 2, 3, 4, 5, 6, 7, -2}};
  const Csr<float> summed{2, 4, {1, 2}, {0, 1, 3}, {1, 0, 1}, {3, 4, 8, 0, 5, 6}};
  EXPECT_EQ(to_csr(coo, Duplicates::Sum), summed);
  EXPECT_EQ(to_csc(coo, Duplicates::Sum), to_csc(summed));
  EXPECT_THROW(to_csr(coo), Error);
  EXPECT_THROW(to_csc(coo), Error);
  const Csr<float> twice{1, 4, {}, {0, 4}, {2, 0, 2, 2}, {1e8f, 2, 1, -1e8f}};
  EXPECT_EQ(sort_columns(twice, Duplicates::Sum),
            (Csr<float>{1, 4, {}, {0, 2}, {0, 2}, {2, 0}}));  // another order gives 1
  EXPECT_THROW(sort_columns(twice), Error);
}

TEST(EveryFormat, ReachesEveryOtherInEveryBlock) {
  const auto csr = random_pattern(24, 36, {2, 3}, 0.4, 20261121);
  const auto csc = to_csc(csr);
  const auto coo = to_coo(csr);
  EXPECT_EQ(to_csr(csc), csr);
  EXPECT_EQ(to_csr(coo), csr);
  EXPECT_EQ(to_csc(coo), csc);
  EXPECT_EQ(to_coo(csc), coo);
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{2, 3}, BlockShape{4, 1},
                                 BlockShape{1, 6}, BlockShape{12, 12}}) {
    const auto other = with_block(csr, block);
    EXPECT_EQ(to_csr(with_block(csc, block)), other) << block.rows << " x " << block.cols;
    EXPECT_EQ(to_csr(with_block(coo, block)), other) << block.rows << " x " << block.cols;
  }
}

}  // namespace
}  // namespace tessera::sparse
