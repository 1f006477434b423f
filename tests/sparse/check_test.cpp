#include "tessera/sparse/check.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "tessera/sparse/convert.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::sparse {
namespace {

using test::draw;
using test::raises;

constexpr auto kBad = ErrorCode::BadInput;
constexpr std::int64_t kTwoTo31 = std::int64_t{1} << 31;

//   block columns  0   1        4 x 6 elements in 2 x 3 blocks
//   block row 0    A   B
//   block row 1    .   C
template <class T>
Csr<T> small_csr() {
  Csr<T> m{4, 6, {2, 3}, {0, 2, 3}, {0, 1, 1}, std::vector<T>(18, T(1))};
  return m;
}

template <class T>
Csc<T> small_csc() {
  return {4, 6, {2, 3}, {0, 1, 3}, {0, 0, 1}, std::vector<T>(18, T(1))};
}

template <class T>
Coo<T> small_coo() {
  return {4, 6, {2, 3}, {1, 0, 0}, {1, 1, 0}, std::vector<T>(18, T(1))};
}

// `matrix` with one thing broken, which must be refused with these words.
template <class Matrix, class Break>
testing::AssertionResult refused(Matrix matrix, const std::vector<std::string>& words,
                                 Break&& damage) {
  damage(matrix);
  return raises(kBad, words, [&matrix] { check(matrix); });
}

template <class T>
class Check : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Check, Types);

TYPED_TEST(Check, AcceptsLegalMatrices) {
  EXPECT_NO_THROW(check(small_csr<TypeParam>()));
  EXPECT_NO_THROW(check(small_csc<TypeParam>()));
  EXPECT_NO_THROW(check(small_coo<TypeParam>()));
}

TYPED_TEST(Check, AcceptsMatricesWithoutRowsColumnsOrBlocks) {
  EXPECT_NO_THROW(check(Csr<TypeParam>{}));
  EXPECT_NO_THROW(check(Csc<TypeParam>{}));
  EXPECT_NO_THROW(check(Coo<TypeParam>{}));
  EXPECT_NO_THROW(check(Csr<TypeParam>{0, 6, {2, 3}, {0}, {}, {}}));
  EXPECT_NO_THROW(check(Csr<TypeParam>{4, 0, {2, 3}, {0, 0, 0}, {}, {}}));
  EXPECT_NO_THROW(check(Csc<TypeParam>{4, 0, {2, 3}, {0}, {}, {}}));
  EXPECT_NO_THROW(check(Coo<TypeParam>{4, 6, {2, 3}, {}, {}, {}}));
}

TYPED_TEST(Check, AcceptsEveryKindOfValue) {
  auto m = small_csr<TypeParam>();
  using Limits = std::numeric_limits<TypeParam>;
  m.values[0] = Limits::quiet_NaN(), m.values[1] = -Limits::infinity();
  m.values[2] = Limits::denorm_min(), m.values[3] = 0;
  EXPECT_NO_THROW(check(m));
}

// Non-square blocks must not mix up rows and columns: 8 x 18 in 2 x 3 blocks has 4 block rows and
// 6 block columns.
TYPED_TEST(Check, AcceptsNonSquareBlocksInColumnOrder) {
  EXPECT_NO_THROW(check(
      Csc<TypeParam>{8, 18, {2, 3}, {0, 1, 1, 1, 1, 1, 2}, {3, 0}, std::vector<TypeParam>(12)}));
}

TEST(CheckCsr, RefusesSizesThatCannotBe) {
  const auto bad = [](const std::vector<std::string>& words, auto damage) {
    return refused(small_csr<float>(), words, damage);
  };
  EXPECT_TRUE(bad({"CSR", "-4 rows"}, [](auto& m) { m.rows = -4; }));
  EXPECT_TRUE(bad({"CSR", "-6 columns"}, [](auto& m) { m.cols = -6; }));
  EXPECT_TRUE(bad({"5 rows", "multiple of the 2 rows", "6"}, [](auto& m) { m.rows = 5; }));
  EXPECT_TRUE(bad({"7 columns", "multiple of the 3 columns", "9"}, [](auto& m) { m.cols = 7; }));
  EXPECT_TRUE(bad({"0 rows and 3 columns"}, [](auto& m) { m.block.rows = 0; }));
  EXPECT_TRUE(bad({"2 rows and -3 columns"}, [](auto& m) { m.block.cols = -3; }));
  EXPECT_TRUE(bad({"area", "64 bits"},
                  [](auto& m) { m.block = {std::int64_t{1} << 32, std::int64_t{1} << 32}; }));
  EXPECT_TRUE(bad({"block rows", "2147483647"}, [](auto& m) { m.rows = 2 * kTwoTo31; }));
  EXPECT_TRUE(bad({"block columns", "2147483647"}, [](auto& m) { m.cols = 3 * kTwoTo31; }));
}

TEST(CheckCoo, AllowsTheLargestCountOfBlockRowsAndNotOneMore) {
  Coo<float> m{kTwoTo31 - 1, kTwoTo31 - 1, {1, 1}, {2147483646}, {2147483646}, {1}};
  EXPECT_NO_THROW(check(m));
  m.rows = kTwoTo31;
  EXPECT_TRUE(raises(kBad, {"COO", "2147483648 block rows"}, [&m] { check(m); }));
}

TEST(CheckCsr, RefusesPointersThatCannotBe) {
  const auto bad = [](const std::vector<std::string>& words, auto damage) {
    return refused(small_csr<float>(), words, damage);
  };
  EXPECT_TRUE(bad({"row_begin has 0 entries", "2 block rows need 3"},
                  [](auto& m) { m.row_begin.clear(); }));
  EXPECT_TRUE(bad({"row_begin has 2 entries"}, [](auto& m) { m.row_begin.pop_back(); }));
  EXPECT_TRUE(bad({"row_begin has 4 entries"}, [](auto& m) { m.row_begin.push_back(3); }));
  EXPECT_TRUE(bad({"row_begin[0]", "block row 0", "is 1"}, [](auto& m) { m.row_begin[0] = 1; }));
  EXPECT_TRUE(bad({"descends at block row 1", "from 4 to 3"}, [](auto& m) { m.row_begin[1] = 4; }));
  EXPECT_TRUE(
      bad({"descends at block row 0", "from 0 to -1"}, [](auto& m) { m.row_begin[1] = -1; }));
  EXPECT_TRUE(bad({"row_begin[2]", "last block row", "is 2", "must be 3"},
                  [](auto& m) { m.row_begin[2] = 2; }));
  EXPECT_TRUE(bad({"row_begin[2]", "is 3", "must be 2"}, [](auto& m) { m.col.pop_back(); }));
}

// The form a widely read page prints for a 4 x 6 matrix has one pointer too many.
TEST(CheckCsr, RefusesThePointerArrayOfAKnownMisprint) {
  const Csr<float> m{4, 6, {1, 1}, {0, 1, 2, 4, 5, 5}, {0, 2, 0, 5, 1}, {2.5, 1.5, 1.5, 2.5, 2}};
  EXPECT_TRUE(raises(kBad, {"row_begin has 6 entries", "need 5"}, [&m] { check(m); }));
}

TEST(CheckCsr, RefusesIndicesThatCannotBe) {
  const auto bad = [](const std::vector<std::string>& words, auto damage) {
    return refused(small_csr<float>(), words, damage);
  };
  EXPECT_TRUE(bad({"col[2]", "block row 1", "block column 2", "2 block columns"},
                  [](auto& m) { m.col[2] = 2; }));
  EXPECT_TRUE(bad({"col[0]", "block row 0", "block column -1"}, [](auto& m) { m.col[0] = -1; }));
  EXPECT_TRUE(
      bad({"block row 0 holds block column 1 twice", "[0]", "[1]"}, [](auto& m) { m.col[0] = 1; }));
  EXPECT_TRUE(bad({"block row 0", "block column 0 comes after 1", "ascend"},
                  [](auto& m) { m.col = {1, 0, 1}; }));
}

TEST(CheckCsr, RefusesAWrongNumberOfValues) {
  const auto bad = [](const std::vector<std::string>& words, auto damage) {
    return refused(small_csr<float>(), words, damage);
  };
  EXPECT_TRUE(bad({"17 values", "3 blocks of 2 rows and 3 columns need 18"},
                  [](auto& m) { m.values.pop_back(); }));
  EXPECT_TRUE(bad({"19 values"}, [](auto& m) { m.values.push_back(0); }));
  EXPECT_TRUE(bad({"0 values"}, [](auto& m) { m.values.clear(); }));
}

TEST(CheckCsr, CountsTheValuesOfHugeBlocksWithoutOverflow) {
  const std::int64_t side = std::int64_t{1} << 31;
  // 4 blocks of 2^62 values: the product is 2^64 and would wrap to 0.
  const Csr<float> m{2 * side, 2 * side, {side, side}, {0, 2, 4}, {0, 1, 0, 1}, {}};
  EXPECT_TRUE(raises(kBad, {"0 values", "64 bits"}, [&m] { check(m); }));
}

TEST(CheckCsc, SpeaksOfColumnsWhereACsrSpeaksOfRows) {
  const auto bad = [](const std::vector<std::string>& words, auto damage) {
    return refused(small_csc<float>(), words, damage);
  };
  EXPECT_TRUE(bad({"CSC", "5 rows", "multiple"}, [](auto& m) { m.rows = 5; }));
  EXPECT_TRUE(bad({"col_begin has 2 entries", "2 block columns need 3"},
                  [](auto& m) { m.col_begin.pop_back(); }));
  EXPECT_TRUE(bad({"col_begin[0]", "block column 0"}, [](auto& m) { m.col_begin[0] = 1; }));
  EXPECT_TRUE(bad({"descends at block column 1"}, [](auto& m) { m.col_begin[1] = 4; }));
  EXPECT_TRUE(bad({"col_begin[2]", "is 2"}, [](auto& m) { m.col_begin[2] = 2; }));
  EXPECT_TRUE(bad({"row[0]", "block column 0", "block row 2", "2 block rows"},
                  [](auto& m) { m.row[0] = 2; }));
  EXPECT_TRUE(bad({"block column 1 holds block row 0 twice"}, [](auto& m) { m.row[2] = 0; }));
  EXPECT_TRUE(
      bad({"block column 1", "block row 0 comes after 1"}, [](auto& m) { m.row = {0, 1, 0}; }));
  EXPECT_TRUE(bad({"17 values"}, [](auto& m) { m.values.pop_back(); }));
}

TEST(CheckCoo, RefusesCoordinatesThatCannotBe) {
  const auto bad = [](const std::vector<std::string>& words, auto damage) {
    return refused(small_coo<float>(), words, damage);
  };
  EXPECT_TRUE(bad({"COO", "7 columns"}, [](auto& m) { m.cols = 7; }));
  EXPECT_TRUE(bad({"-4 rows"}, [](auto& m) { m.rows = -4; }));
  EXPECT_TRUE(bad({"2 row and 3 column coordinates"}, [](auto& m) { m.row.pop_back(); }));
  EXPECT_TRUE(bad({"3 row and 2 column coordinates"}, [](auto& m) { m.col.pop_back(); }));
  EXPECT_TRUE(bad({"position 0", "block row 2, block column 1", "2 block rows"},
                  [](auto& m) { m.row[0] = 2; }));
  EXPECT_TRUE(bad({"position 2", "block row 0, block column -1"}, [](auto& m) { m.col[2] = -1; }));
  EXPECT_TRUE(bad({"17 values"}, [](auto& m) { m.values.pop_back(); }));
}

TEST(CheckCoo, FindsDuplicatesFarApartAndNamesBothPositions) {
  EXPECT_TRUE(refused(small_coo<float>(),
                      {"block row 1, block column 1 is given twice", "positions 0 and 2"},
                      [](auto& m) { m.row = {1, 0, 1}, m.col = {1, 1, 1}; }));
  EXPECT_TRUE(refused(small_coo<float>(), {"block row 0, block column 1", "positions 1 and 2"},
                      [](auto& m) { m.row = {0, 0, 0}, m.col = {0, 1, 1}; }));
}

TEST(Formats, AreEqualOnlyWhenEveryFieldIs) {
  const auto m = small_csr<float>();
  EXPECT_EQ(m, small_csr<float>());
  auto other = m;
  other.values[3] = 2;
  EXPECT_NE(m, other);
  other = m;
  other.block = {3, 2};
  EXPECT_NE(m, other);
}

TEST(Formats, PrintOneLine) {
  std::ostringstream out;
  out << small_csr<float>() << "; " << small_csc<double>() << "; " << small_coo<float>();
  EXPECT_EQ(out.str(),
            "CSR 4 x 6, blocks of 2 x 3, 3 blocks; CSC 4 x 6, blocks of 2 x 3, 3 blocks; "
            "COO 4 x 6, blocks of 2 x 3, 3 blocks");
}

}  // namespace
}  // namespace tessera::sparse
