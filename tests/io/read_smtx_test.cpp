#include <gtest/gtest.h>

#include "tessera/io/read.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::io {
namespace {

using test::raises;

testing::AssertionResult refused(std::string_view text, const std::vector<std::string>& words,
                                 ErrorCode code = ErrorCode::BadInput) {
  return raises(code, words, [text] { read_smtx(text, "w.smtx"); });
}

//   .1..1.
//   ......
//   1....1
//   ..1...
const sparse::Csr<double> kExpected{
    4, 6, {1, 1}, {0, 2, 2, 4, 5}, {1, 4, 0, 5, 2}, {1, 1, 1, 1, 1}};

TEST(ReadSmtx, ReadsThreeLinesHoweverTheyAreSeparated) {
  for (const std::string_view text :
       {"4, 6, 5\n0 2 2 4 5\n1 4 0 5 2\n", "4 6 5\n0 2 2 4 5\n1 4 0 5 2",
        "4,6,5\r\n0,2,2,4,5\r\n1,4,0,5,2\r\n",
        "% a\n\n 4\t6  5 \n%\n0 2 2 4 5 \n\n1 4 0 5 2\n\n%\n", "+4 6 5\n0 2 2 4 5\n1 4 0 5 2\n"}) {
    const ReadMatrix read = read_smtx(text, "w.smtx");
    EXPECT_EQ(read.matrix, kExpected) << text;
    EXPECT_FALSE(read.has_values);
  }
}

TEST(ReadSmtx, NeedsNoThirdLineWithoutNonZeros) {
  for (const std::string_view text : {"2, 3, 0\n0 0 0 \n\n", "2, 3, 0\n0 0 0\n", "2 3 0\n0 0 0"}) {
    const ReadMatrix read = read_smtx(text, "w.smtx");
    EXPECT_EQ(read.matrix, (sparse::Csr<double>{2, 3, {1, 1}, {0, 0, 0}, {}, {}})) << text;
  }
  EXPECT_EQ(read_smtx("0 0 0\n0\n", "w").matrix, (sparse::Csr<double>{}));
  EXPECT_EQ(read_smtx("0 5 0\n0\n", "w").matrix.cols, 5);
}

TEST(ReadSmtx, RefusesSizesThatCannotBe) {
  EXPECT_TRUE(refused("", {"w.smtx:1:", "empty"}));
  EXPECT_TRUE(refused("\n% only words\n\n", {"w.smtx:3:", "empty"}));
  EXPECT_TRUE(refused("4 6\n", {"w.smtx:1:", "number of non-zeros is missing"}));
  EXPECT_TRUE(refused("4 6 5 1\n", {"w.smtx:1:", "\"1\" follows"}));
  EXPECT_TRUE(refused("-4 6 5\n", {"w.smtx:1:", "number of rows is \"-4\"", "0.."}));
  EXPECT_TRUE(refused("4 six 5\n", {"number of columns is \"six\""}));
  EXPECT_TRUE(refused("4 6 5x\n", {"number of non-zeros is \"5x\""}));
  EXPECT_TRUE(refused("4 6 nan\n", {"number of non-zeros is \"nan\""}));
  EXPECT_TRUE(refused("4.0 6 5\n", {"number of rows is \"4.0\""}));
  EXPECT_TRUE(refused("4 6 99999999999999999999\n", {"number of non-zeros is \"9999999999"}));
  EXPECT_TRUE(refused("4 6 25\n0 0 0 0 0\n", {"25 non-zeros", "4 rows and 6 columns", "24"}));
}

TEST(ReadSmtx, RefusesAWrongNumberOfOffsetsOrIndices) {
  EXPECT_TRUE(refused("4 6 5\n", {"w.smtx:1:", "ends before its second line", "5 row offsets"}));
  EXPECT_TRUE(refused("4 6 5\n0 2 2 4\n1 4 0 5 2\n", {"w.smtx:2:", "4 numbers", "must be 5"}));
  EXPECT_TRUE(refused("4 6 5\n0 2 2 4 5 5\n1 4 0 5 2\n", {"w.smtx:2:", "more than 5", "\"5\""}));
  EXPECT_TRUE(refused("4 6 5\n0 2 2 4 5\n", {"w.smtx:2:", "third line", "5 column indices"}));
  EXPECT_TRUE(refused("4 6 5\n0 2 2 4 5\n1 4 0 5\n", {"w.smtx:3:", "4 numbers", "must be 5"}));
  EXPECT_TRUE(refused("4 6 5\n0 2 2 4 5\n1 4 0 5 2 3\n", {"w.smtx:3:", "more than 5"}));
  EXPECT_TRUE(refused("4 6 5\n0 2 2 4 5\n1 4 0 5 2\n3\n", {"w.smtx:4:", "more text"}));
  EXPECT_TRUE(refused("2 2 0\n0 0 0\n1\n", {"w.smtx:3:", "more text"}));
}

TEST(ReadSmtx, RefusesOffsetsAndIndicesThatCannotBe) {
  EXPECT_TRUE(refused("4 6 5\n1 2 2 4 5\n1 4 0 5 2\n", {"w.smtx:2:", "row_begin[0]", "row 0"}));
  EXPECT_TRUE(refused("4 6 5\n0 3 2 4 5\n1 4 0 5 2\n", {"w.smtx:2:", "descends at block row 1"}));
  EXPECT_TRUE(refused("4 6 5\n0 2 2 4 4\n1 4 0 5 2\n", {"w.smtx:2:", "row_begin[4]", "is 4"}));
  EXPECT_TRUE(refused("4 6 5\n0 2 2 4 6\n1 4 0 5 2\n", {"w.smtx:2:", "row offset is \"6\""}));
  EXPECT_TRUE(refused("4 6 5\n0 2 2 4 5\n1 6 0 5 2\n", {"w.smtx:3:", "\"6\"", "0..5"}));
  EXPECT_TRUE(refused("4 6 5\n0 2 2 4 5\n1 -1 0 5 2\n", {"w.smtx:3:", "\"-1\""}));
  EXPECT_TRUE(refused("4 6 5\n0 2 2 4 5\n4 4 0 5 2\n", {"w.smtx:3:", "row 0", "column 4 twice"}));
  EXPECT_TRUE(
      refused("4 6 5\n0 2 2 4 5\n1 4 5 0 2\n", {"w.smtx:3:", "row 2", "column 0 comes after 5"}));
}

TEST(ReadSmtx, SetsNoMemoryAsideForWhatAFileCannotHold) {
  const auto kLimit = ErrorCode::LimitExceeded;
  EXPECT_TRUE(refused("1000000000000 1 0\n0\n", {"1000000000000 rows", "1048576"}, kLimit));
  EXPECT_TRUE(refused("1 1048577 0\n0 0\n", {"1048577 columns", "1048576"}, kLimit));
  EXPECT_TRUE(refused("1000000 1000000 1000000000000\n0\n", {"1 numbers", "1000001"}));
  EXPECT_NO_THROW(read_smtx("1 1048576 0\n0 0\n", "w"));
}

TEST(ReadSmtx, QuotesJunkSoThatItCanBePrinted) {
  const std::string junk("\x00\xff\x1b[31m 1 2\n", 12);
  EXPECT_TRUE(refused(junk, {"w.smtx:1:", "\"\\x00\\xff\\x1b[31m\""}));
  EXPECT_TRUE(refused(std::string(1000, '7'), {"\"777777777777777777777777...\""}));
}

}  // namespace
}  // namespace tessera::io
