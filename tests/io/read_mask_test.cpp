#include <gtest/gtest.h>

#include "tessera/io/read.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::io {
namespace {

using test::raises;

testing::AssertionResult refused(std::string_view text, const std::vector<std::string>& words,
                                 ErrorCode code = ErrorCode::BadInput) {
  return raises(code, words, [text] { read_mask(text, "m.txt"); });
}

TEST(ReadMask, ReadsPlacesHoweverTheyAreBrokenIntoLines) {
  const sparse::Csr<double> expected{2, 3, {1, 1}, {0, 1, 3}, {1, 0, 2}, {1, 1, 1}};
  for (const std::string_view text :
       {"2 3\n0 1 0\n1 0 1\n", "2 3 0 1 0 1 0 1", "2\r\n3\r\n0\t1 0\r\n\r\n1 0 1\r\n"}) {
    const ReadMatrix read = read_mask(text, "m.txt");
    EXPECT_EQ(read.matrix, expected) << text;
    EXPECT_FALSE(read.has_values);
  }
}

TEST(ReadMask, ReadsEmptyMatrices) {
  EXPECT_EQ(read_mask("0 0", "m").matrix, (sparse::Csr<double>{}));
  EXPECT_EQ(read_mask("2 0\n", "m").matrix, (sparse::Csr<double>{2, 0, {1, 1}, {0, 0, 0}, {}, {}}));
}

TEST(ReadMask, RefusesMasksThatCannotBe) {
  EXPECT_TRUE(refused("", {"m.txt:1:", "number of rows is missing"}));
  EXPECT_TRUE(refused("2", {"m.txt:1:", "number of columns is missing"}));
  EXPECT_TRUE(refused("-2 3\n", {"number of rows is \"-2\""}));
  EXPECT_TRUE(refused("2 3.5\n", {"number of columns is \"3.5\""}));
  EXPECT_TRUE(refused("2 3\n0 1 0\n1 2 1\n", {"m.txt:3:", "row 1, column 1", "\"2\"", "0 or 1"}));
  EXPECT_TRUE(refused("2 3\n0 1 0\n1 01 1\n", {"row 1, column 1", "\"01\""}));
  EXPECT_TRUE(refused("2 3\n0 1 0\n1 0   \n", {"row 1, column 2", "ends too early"}));
  EXPECT_TRUE(refused("2 3\n0 1 0\n1 0 1 1\n", {"m.txt:3:", "\"1\" follows"}));
}

TEST(ReadMask, SetsNoMemoryAsideForWhatAFileCannotHold) {
  EXPECT_TRUE(refused("1000000 1000000\n0 1\n", {"1000000000000 elements", "20 bytes"}));
  EXPECT_TRUE(refused("1000000000000 0\n", {"1000000000000 rows"}, ErrorCode::LimitExceeded));
  EXPECT_TRUE(refused("99999999999999999999 1\n", {"number of rows"}));
}

}  // namespace
}  // namespace tessera::io
