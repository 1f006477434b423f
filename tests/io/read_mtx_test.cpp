#include <gtest/gtest.h>

#include <cmath>

#include "tessera/io/read.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::io {
namespace {

using test::draw;
using test::raises;

const std::string kReal = "%%MatrixMarket matrix coordinate real general\n";
const std::string kSymmetric = "%%MatrixMarket matrix coordinate real symmetric\n";
const std::string kSkew = "%%MatrixMarket matrix coordinate real skew-symmetric\n";
const std::string kArray = "%%MatrixMarket matrix array real general\n";

testing::AssertionResult refused(const std::string& text, const std::vector<std::string>& words,
                                 ErrorCode code = ErrorCode::BadInput) {
  return raises(code, words, [&text] { read_mtx(text, "a.mtx"); });
}

sparse::Csr<double> drawn(const std::vector<std::string>& picture) {
  return cast<double>(draw(picture));
}

TEST(ReadMtx, ReadsEntriesInAnyOrder) {
  const ReadMatrix read =
      read_mtx(kReal + "% words\n\n 4 6 5 \n4 3 5\n1 5 2\n3 6 4\n1 2 1.0e0\n3 1 +3.\n", "a.mtx");
  EXPECT_EQ(read.matrix, drawn({".1..2.", "......", "3....4", "..5..."}));
  EXPECT_TRUE(read.has_values);
}

TEST(ReadMtx, ReadsTheBannerInAnyCaseAndLinesWithReturns) {
  const ReadMatrix read =
      read_mtx("%%matrixmarket MATRIX Coordinate REAL General\r\n2 2 1\r\n2 1 3\r\n", "a.mtx");
  EXPECT_EQ(read.matrix, drawn({"..", "3."}));
  EXPECT_EQ(read_mtx("%%MatrixMarket matrix coordinate double general\n1 1 1\n1 1 7", "a").matrix,
            drawn({"7"}));
}

TEST(ReadMtx, GivesAPatternOnes) {
  const ReadMatrix read =
      read_mtx("%%MatrixMarket matrix coordinate pattern general\n2 3 2\n2 3\n1 1\n", "a.mtx");
  EXPECT_EQ(read.matrix, drawn({"1..", "..1"}));
  EXPECT_FALSE(read.has_values);
}

TEST(ReadMtx, KeepsTheOrderOfAPattern) {
  const auto order = [](const std::string& symmetry, const std::string& entries) {
    const std::string banner = "%%MatrixMarket matrix coordinate pattern " + symmetry;
    return read_mtx(banner + "\n2 2 " + entries, "a").entry_of_value;
  };
  EXPECT_EQ(order("general", "3\n1 1\n2 1\n1 2\n"), (std::vector<std::int64_t>{0, 2, 1}));
  EXPECT_EQ(order("general", "3\n1 1\n1 2\n2 1\n"), std::vector<std::int64_t>{});
  EXPECT_EQ(order("symmetric", "2\n1 1\n1 2\n"), (std::vector<std::int64_t>{0, 1, 1}));
  EXPECT_EQ(order("symmetric", "2\n1 1\n2 2\n"), std::vector<std::int64_t>{});
}

TEST(ReadMtx, ReadsIntegersAsFarAsADoubleHoldsThem) {
  const std::string head = "%%MatrixMarket matrix coordinate integer general\n1 2 2\n1 1 -7\n1 2 ";
  EXPECT_EQ(read_mtx(head + "9007199254740992\n", "a").matrix.values,
            (std::vector<double>{-7, 9007199254740992.0}));
  EXPECT_TRUE(refused(head + "9007199254740993\n", {"a.mtx:4:", "value is \"9007199254740993\""}));
  EXPECT_TRUE(refused(head + "1.5\n", {"a.mtx:4:", "value is \"1.5\"", "whole number"}));
}

TEST(ReadMtx, CompletesSymmetricMatrices) {
  EXPECT_EQ(read_mtx(kSymmetric + "3 3 3\n1 1 1\n3 1 2\n3 2 3\n", "a").matrix,
            drawn({"1.2", "..3", "23."}));
  EXPECT_EQ(read_mtx(kSymmetric + "2 2 1\n1 2 5\n", "a").matrix, drawn({".5", "5."}));
  const sparse::Csr<double> skew = read_mtx(kSkew + "3 3 2\n3 1 2\n3 2 -4\n", "a").matrix;
  EXPECT_EQ(skew, (sparse::Csr<double>{3, 3, {1, 1}, {0, 1, 2, 4}, {2, 2, 0, 1}, {-2, 4, 2, -4}}));
}

TEST(ReadMtx, ReadsArraysColumnByColumnAndLeavesZerosOut) {
  EXPECT_EQ(read_mtx(kArray + "2 3\n1\n0\n2\n3\n-0\n4\n", "a").matrix, drawn({"12.", ".34"}));
  EXPECT_EQ(read_mtx("%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n", "a").matrix,
            drawn({"12", "23"}));
  EXPECT_EQ(read_mtx("%%MatrixMarket matrix array integer skew-symmetric\n2 2\n2\n", "a").matrix,
            (sparse::Csr<double>{2, 2, {1, 1}, {0, 1, 2}, {1, 0}, {-2, 2}}));
}

TEST(ReadMtx, StoresExplicitZerosAndReadsNonFiniteValues) {
  const sparse::Csr<double> m =
      read_mtx(kReal + "1 4 4\n1 1 0\n1 2 nan\n1 3 -inf\n1 4 INF\n", "a").matrix;
  ASSERT_EQ(m.blocks(), 4);
  EXPECT_EQ(m.values[0], 0);
  EXPECT_TRUE(std::isnan(m.values[1]));
  EXPECT_EQ(m.values[2], -INFINITY);
  EXPECT_EQ(m.values[3], INFINITY);
}

TEST(ReadMtx, ReadsEmptyMatrices) {
  EXPECT_EQ(read_mtx(kReal + "0 0 0\n", "a").matrix, (sparse::Csr<double>{}));
  EXPECT_EQ(read_mtx(kReal + "2 3 0", "a").matrix, drawn({"...", "..."}));
  EXPECT_EQ(read_mtx(kArray + "0 3\n", "a").matrix.cols, 3);
  EXPECT_EQ(read_mtx(kSkew + "1 1 0\n", "a").matrix, drawn({"."}));
}

TEST(ReadMtx, RefusesBannersItCannotRead) {
  const auto banner = [](const std::string& words) {
    return "%%MatrixMarket " + words + "\n1 1 0\n";
  };
  EXPECT_TRUE(refused("", {"a.mtx:1:", "empty", "%%MatrixMarket"}));
  EXPECT_TRUE(refused("1 1 1\n1 1 1\n", {"a.mtx:1:", "starts with \"1\"", "%%MatrixMarket"}));
  EXPECT_TRUE(refused("\n" + kReal + "1 1 0\n", {"a.mtx:1:", "starts with \"\""}));
  EXPECT_TRUE(refused(banner("vector coordinate real general"), {"object is \"vector\""}));
  EXPECT_TRUE(refused(banner("matrix dense real general"), {"format is \"dense\"", "array"}));
  EXPECT_TRUE(refused(banner("matrix coordinate complex general"), {"complex", "real"}));
  EXPECT_TRUE(refused(banner("matrix coordinate Complex Hermitian"), {"complex"}));
  EXPECT_TRUE(refused(banner("matrix coordinate real hermitian"), {"hermitian"}));
  EXPECT_TRUE(refused(banner("matrix coordinate quaternion general"), {"field is \"quaternion\""}));
  EXPECT_TRUE(refused(banner("matrix coordinate real"), {"symmetry is \"\""}));
  EXPECT_TRUE(refused(banner("matrix coordinate real upper"), {"symmetry is \"upper\""}));
  EXPECT_TRUE(refused(banner("matrix coordinate real general x"), {"\"x\" follows the banner"}));
  EXPECT_TRUE(refused(banner("matrix array pattern general"), {"pattern", "array"}));
  EXPECT_TRUE(refused(banner("matrix coordinate pattern skew-symmetric"), {"pattern", "skew"}));
}

TEST(ReadMtx, RefusesSizesThatCannotBe) {
  EXPECT_TRUE(refused(kReal, {"a.mtx:1:", "before its line of sizes"}));
  EXPECT_TRUE(refused(kReal + "% c\n2 2\n", {"a.mtx:3:", "number of entries is missing"}));
  EXPECT_TRUE(refused(kReal + "-2 2 1\n1 1 1\n", {"a.mtx:2:", "number of rows is \"-2\""}));
  EXPECT_TRUE(refused(kReal + "2 x 1\n1 1 1\n", {"number of columns is \"x\""}));
  EXPECT_TRUE(refused(kReal + "2 2 1 1\n1 1 1\n", {"\"1\" follows the sizes"}));
  EXPECT_TRUE(refused(kArray + "2 2 4\n1\n1\n1\n1\n", {"\"4\" follows the sizes"}));
  EXPECT_TRUE(refused(kSymmetric + "2 3 0\n", {"2 rows and 3 columns", "square"}));
  EXPECT_TRUE(
      refused(kReal + "1 2 3\n1 1 1\n1 2 1\n1 2 1\n", {"3 entries", "1 rows and 2 columns"}));
}

TEST(ReadMtx, RefusesEntriesThatCannotBe) {
  const std::string head = kReal + "2 3 2\n1 1 1\n";
  EXPECT_TRUE(refused(head + "3 1 1\n", {"a.mtx:4:", "row is \"3\"", "1..2"}));
  EXPECT_TRUE(refused(head + "0 1 1\n", {"a.mtx:4:", "row is \"0\"", "1..2"}));
  EXPECT_TRUE(refused(head + "2 4 1\n", {"a.mtx:4:", "column is \"4\"", "1..3"}));
  EXPECT_TRUE(refused(head + "2 -1 1\n", {"a.mtx:4:", "column is \"-1\""}));
  EXPECT_TRUE(refused(head + "2 nan 1\n", {"a.mtx:4:", "column is \"nan\""}));
  EXPECT_TRUE(refused(head + "2 1   \n", {"a.mtx:4:", "value is missing"}));
  EXPECT_TRUE(refused(head + "2 1 abc\n", {"a.mtx:4:", "value is \"abc\""}));
  EXPECT_TRUE(refused(head + "2 1 1,5\n", {"a.mtx:4:", "value is \"1,5\""}));
  EXPECT_TRUE(refused(head + "2 1 1e999\n", {"a.mtx:4:", "value is \"1e999\"", "1.8e308"}));
  EXPECT_TRUE(refused(head + "2 1 1 1\n", {"a.mtx:4:", "\"1\" follows the entry"}));
  EXPECT_TRUE(refused(head + "2 1 1 % no\n", {"a.mtx:4:", "\"%\" follows the entry"}));
  EXPECT_TRUE(refused(kReal + "0 3 1\n1 1 1\n", {"1 entries", "0 rows"}));
  // A long number is one number, not a row and a column.
  EXPECT_TRUE(refused(head + "000000000012 1\n", {"a.mtx:4:", "row is \"000000000012\""}));
}

TEST(ReadMtx, RefusesTooFewAndTooManyEntries) {
  EXPECT_TRUE(refused(kReal + "2 3 2\n1 1 1.0000000\n", {"a.mtx:3:", "after 1 of 2 entries"}));
  EXPECT_TRUE(refused(kReal + "2 3 1\n1 1 1\n2 1 1\n", {"a.mtx:4:", "more text", "1 entries"}));
  EXPECT_TRUE(refused(kArray + "2 1\n1\n2\n3\n", {"a.mtx:5:", "more text"}));
  EXPECT_TRUE(refused(kArray + "2 2\n1000\n2\n3\n", {"a.mtx:5:", "after 3 of 4"}));
}

TEST(ReadMtx, RefusesDuplicatesAndNamesBothLines) {
  EXPECT_TRUE(refused(kReal + "2 3 3\n2 1 1\n1 1 1\n2 1 5\n",
                      {"a.mtx:5:", "row 2, column 1 is given twice", "line 3"}));
  EXPECT_TRUE(refused(kSymmetric + "2 2 2\n2 1 1\n1 2 1\n",
                      {"a.mtx:4:", "is given twice (mirrored or not)", "line 3"}));
  EXPECT_TRUE(refused(kSymmetric + "2 2 2\n1 1 1\n1 1 1\n",
                      {"a.mtx:4:", "row 1, column 1 is given twice", "line 3"}));
  EXPECT_TRUE(refused(kSkew + "2 2 1\n2 2 0\n", {"a.mtx:3:", "row 2, column 2", "diagonal"}));
}

TEST(ReadMtx, SetsNoMemoryAsideForWhatAFileCannotHold) {
  const auto kLimit = ErrorCode::LimitExceeded;
  EXPECT_TRUE(refused(kReal + "1000000000000 1 0\n", {"a.mtx:2:", "1000000000000 rows"}, kLimit));
  EXPECT_TRUE(refused(kReal + "9223372036854775807 9223372036854775807 1\n", {"rows"}, kLimit));
  EXPECT_TRUE(refused(kReal + "1 1048577 0\n", {"1048577 columns", "1048576"}, kLimit));
  EXPECT_TRUE(refused(kReal + "1000000 1000000 1000000000000\n1 1 1\n",
                      {"a.mtx:2:", "1000000000000 entries", "6 bytes"}));
  EXPECT_TRUE(refused(kArray + "1000000 1000000\n1\n", {"1000000000000 entries", "2 bytes"}));
  EXPECT_TRUE(refused(kReal + "2 2 99999999999999999999\n", {"number of entries"}));
}

TEST(ReadMtx, AcceptsTheShortestEntriesAFileCanHold) {
  EXPECT_EQ(read_mtx(kReal + "1 2 2\n1 1 1\n1 2 2", "a").matrix, drawn({"12"}));
  EXPECT_EQ(
      read_mtx("%%MatrixMarket matrix coordinate pattern general\n1 2 2\n1 1\n1 2", "a").matrix,
      drawn({"11"}));
  EXPECT_EQ(read_mtx(kArray + "1 2\n1\n2", "a").matrix, drawn({"12"}));
}

}  // namespace
}  // namespace tessera::io
