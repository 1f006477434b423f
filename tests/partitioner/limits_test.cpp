#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/base/error.hpp"
#include "tessera/tests/partitioner/bucket_checks.hpp"
#include "tessera/tests/partitioner/patterns.hpp"

// The largest that words of 16 bits can say, and one more.
namespace tessera::partitioner {
namespace {

using testing::HasSubstr;

struct Layer {
  Dims size;  // x and y in blocks
  BlockShape block;
  std::int64_t cells = 1;  // along y
  DataType data_type = DataType::Float;
  bool separate_grad_a = false;
  std::int64_t workers = 6;
};

// "" when the layer with those blocks can be encoded, else the error's text.
std::string fault_of(const Layer& layer,
                     const std::function<bool(std::int64_t, std::int64_t)>& holds,
                     std::int64_t word_bits = 16) {
  const auto matrix = test::make_matrix(layer.size.x, layer.size.y, layer.block, holds);
  TileGrid grid;
  grid.size = {1, matrix.rows, matrix.cols, layer.size.z};
  grid.block = layer.block;
  grid.splits.y = layer.cells;
  grid.data_type = layer.data_type;
  grid.separate_grad_a = layer.separate_grad_a;
  grid.workers = layer.workers;
  grid.word_bits = word_bits;
  try {
    const auto result = encode(matrix, test::with_room(grid, matrix));
    EXPECT_EQ(test::find_fault(*result.buckets, matrix), "");
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::LimitExceeded);
    return e.what();
  }
}

bool all(std::int64_t, std::int64_t) { return true; }

// The last column of the second cell, at batch 4 in float: 16 bytes a row of the dense slice.
TEST(WordLimits, ColumnsReachTo65520BytesOfTheDenseSlice) {
  const auto last_column = [](std::int64_t cols) {
    return [cols](std::int64_t, std::int64_t c) { return c == cols - 1; };
  };
  EXPECT_EQ(fault_of({{1, 1, 2 * 4096, 4}, {}, 2}, last_column(2 * 4096)), "");
  const Layer beyond{{1, 1, 2 * 4097, 4}, {}, 2};
  EXPECT_EQ(
      fault_of(beyond, last_column(2 * 4097)),
      "cell (x 0, y 1): the byte offset of a column is 65536, but a 16-bit word holds at most "
      "65535; cut the matrix into more partitions");
  EXPECT_EQ(fault_of(beyond, last_column(2 * 4097), 32), "");
  Layer half = beyond;
  half.data_type = DataType::Half;
  EXPECT_EQ(fault_of(half, last_column(2 * 4097)), "");
}

TEST(WordLimits, BlockRecordsHoldUpTo65535Values) {
  EXPECT_EQ(fault_of({{1, 15, 17, 4}, {16, 16}}, all), "");  // 255 blocks
  EXPECT_THAT(fault_of({{1, 16, 16, 4}, {16, 16}}, all),
              HasSubstr("the number of values of a record is 65536"));
  EXPECT_EQ(fault_of({{1, 16, 16, 4}, {16, 16}}, all, 32), "");
  EXPECT_EQ(fault_of({{1, 31, 33, 4}, {8, 8}}, all), "");  // 1023 blocks
  EXPECT_THAT(fault_of({{1, 32, 32, 4}, {8, 8}}, all), HasSubstr("is 65536"));
  EXPECT_EQ(fault_of({{1, 63, 65, 4}, {4, 4}}, all), "");  // 4095 blocks
  EXPECT_THAT(fault_of({{1, 64, 64, 4}, {4, 4}}, all), HasSubstr("is 65536"));
}

TEST(WordLimits, GradAValuesReachTo16384InFloat) {
  const auto first = [](std::int64_t n) {
    return [n](std::int64_t r, std::int64_t c) { return r * 129 + c < n; };
  };
  Layer layer{{1, 128, 129, 1}, {}, 1, DataType::Float, true};
  EXPECT_EQ(fault_of(layer, first(16384)), "");
  EXPECT_THAT(fault_of(layer, first(16385)), HasSubstr("a GradA value is 65536"));
  layer.data_type = DataType::Half;
  EXPECT_EQ(fault_of(layer, first(16385)), "");
}

// 9 + 5 words and 3 for every row: 65534 for 21840 rows, 65537 for one more.
TEST(WordLimits, RecordsAreUpTo65535WordsLong) {
  Layer layer{{1, 21840, 1, 1}, {}};
  layer.workers = 1;
  EXPECT_EQ(fault_of(layer, all), "");
  layer.size.x = 21841;
  EXPECT_THAT(fault_of(layer, all), HasSubstr("the words of a record is 65537"));
  EXPECT_EQ(fault_of(layer, all, 32), "");
}

TEST(Encode, RefusesAMatrixThatIsNotTheGrids) {
  const auto matrix = test::draw({"##", "##"});
  TileGrid grid;
  grid.size = {1, 2, 2, 1};
  grid = test::with_room(grid, matrix);
  EXPECT_TRUE(encode(matrix, grid).buckets.has_value());
  TileGrid other = grid;
  other.size.x = 3;
  EXPECT_THROW(encode(matrix, other), Error);
  other = grid;
  other.block = {2, 1};
  EXPECT_THROW(encode(matrix, other), Error);
  auto unsorted = matrix;
  std::swap(unsorted.col[0], unsorted.col[1]);
  EXPECT_THROW(encode(unsorted, grid), Error);
}

}  // namespace
}  // namespace tessera::partitioner
