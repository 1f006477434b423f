#include "tessera/partitioner/tile_grid.hpp"

#include <gmock/gmock.h>

#include <functional>

#include "tessera/base/error.hpp"

namespace tessera::partitioner {
namespace {

using testing::HasSubstr;

TileGrid good_grid() {
  TileGrid grid;
  grid.size = {1, 10, 8, 12};
  grid.block = {1, 1};
  grid.z_grain = 2;
  grid.splits = {1, 5, 4, 3};
  grid.meta_words = 100;
  grid.blocks = 10;
  return grid;
}

std::string fault_of(const std::function<void(TileGrid&)>& spoil) {
  TileGrid grid = good_grid();
  spoil(grid);
  try {
    check(grid);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
    return e.what();
  }
  return "";
}

TEST(TileGrid, AcceptsTheGridThatTheOtherTestsSpoil) {
  EXPECT_EQ(fault_of([](TileGrid&) {}), "");
}

TEST(TileGrid, AcceptsTheSmallestGrid) {
  TileGrid grid;
  grid.meta_words = 1;
  EXPECT_NO_THROW(check(grid));
}

TEST(TileGrid, NamesTheFieldTheValueAndTheLegalRange) {
  EXPECT_EQ(fault_of([](TileGrid& g) { g.splits.y = 9; }),
            "tile grid: splits.y is 9; it must be between 1 and 8");
  EXPECT_THAT(fault_of([](TileGrid& g) { g.splits.x = 0; }), HasSubstr("splits.x is 0"));
  EXPECT_THAT(fault_of([](TileGrid& g) { g.block = {4, 1}; }), HasSubstr("size.x is 10"));
  EXPECT_THAT(fault_of([](TileGrid& g) { g.block = {0, 1}; }), HasSubstr("along x is 0"));
  EXPECT_THAT(fault_of([](TileGrid& g) { g.size.y = 0; }), HasSubstr("size.y is 0"));
  EXPECT_THAT(fault_of([](TileGrid& g) { g.size.z = 8; }), HasSubstr("size.z is 8"));
  EXPECT_THAT(fault_of([](TileGrid& g) { g.z_grain = 5; }), HasSubstr("pad the batch"));
  EXPECT_THAT(fault_of([](TileGrid& g) { g.workers = 0; }), HasSubstr("workers is 0"));
  EXPECT_THAT(fault_of([](TileGrid& g) { g.word_bits = 8; }), HasSubstr("word_bits is 8"));
  EXPECT_THAT(fault_of([](TileGrid& g) { g.meta_words = 0; }), HasSubstr("meta_words is 0"));
  EXPECT_THAT(fault_of([](TileGrid& g) { g.blocks = -1; }), HasSubstr("blocks is -1"));
  EXPECT_THAT(fault_of([](TileGrid& g) { g.grad_a_words = 5; }), HasSubstr("grad_a_words is 5"));
  EXPECT_THAT(fault_of([](TileGrid& g) { g.separate_grad_a = true; }),
              HasSubstr("grad_a_words is 0"));
  EXPECT_THAT(fault_of([](TileGrid& g) { g.size.g = 2; }), HasSubstr("size.g is 2"));
}

TEST(TileGrid, RefusesSeparateGradABucketsForBlocks) {
  EXPECT_THAT(fault_of([](TileGrid& g) {
                g.block = {2, 2};
                g.separate_grad_a = true;
                g.grad_a_words = 100;
              }),
              HasSubstr("hold elements, not blocks of 2 x 2"));
}

// 10 rows cut in 7 are 5 shares of 2: two would be empty. 10 in 5 is fine.
TEST(TileGrid, RefusesEmptyShares) {
  EXPECT_THAT(fault_of([](TileGrid& g) { g.splits.x = 7; }), HasSubstr("as 5 does"));
}

TEST(TileGrid, CountsCellsUpToTheLargestWord) {
  TileGrid grid = good_grid();
  grid.size = {1, 257, 255, 1};
  grid.splits = {1, 257, 255, 1};
  grid.z_grain = 1;
  EXPECT_NO_THROW(check(grid));  // 65535 cells
  grid.size.x = grid.splits.x = 256;
  grid.size.y = grid.splits.y = 256;
  EXPECT_THROW(check(grid), Error);
  grid.word_bits = 32;
  EXPECT_NO_THROW(check(grid));
}

TEST(TileGrid, GrowsItsCapacitiesRoundingUp) {
  TileGrid grid = good_grid();
  grid.meta_words = 90;
  grid.blocks = 7;
  const TileGrid grown = with_capacity(grid, 1.5);
  EXPECT_EQ(grown.meta_words, 135);
  EXPECT_EQ(grown.blocks, 11);
  EXPECT_EQ(grown.grad_a_words, 0);
  grid.blocks = 0;
  EXPECT_EQ(with_capacity(grid, 3).blocks, 3);
}

}  // namespace
}  // namespace tessera::partitioner
