#include "tessera/planner/internal/pattern_map.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace tessera::planner::internal {
namespace {

// Four by four blocks in bins of two by two, of which the first has three and the last one.
const PatternStats kCorner{.block = {1, 1},
                           .row_counts = {2, 1, 0, 1},
                           .col_counts = {2, 1, 0, 1},
                           .bin = {2, 2},
                           .before = {0, 0, 0, 0, 3, 3, 0, 3, 4}};

TEST(PatternMap, CountsTheBlocksOfWholeBinsExactly) {
  PatternMap map(kCorner, {1, 1});
  for (const auto& [parts, blocks] : {std::pair{1, 4.0}, {2, 3.0}}) {
    const FullestCell cell = map.fullest(parts, parts);
    EXPECT_EQ(cell.blocks, blocks);
    EXPECT_EQ(cell.spread, 0);
    EXPECT_EQ(cell.most, blocks);
  }
  EXPECT_EQ(map.fullest(2, 1).blocks, 3);
  EXPECT_EQ(map.fullest(1, 2).blocks, 3);
}

// Half of a bin of three has one and a half on average. The variance of the blocks of a bin is one
// and a half times their mean, and that of a block of a bin that is cut a quarter of it.
TEST(PatternMap, SpreadsTheBlocksOfBinsThatAreCut) {
  PatternMap map(kCorner, {1, 1});
  const FullestCell cell = map.fullest(4, 1);
  EXPECT_EQ(cell.blocks, 1.5);
  EXPECT_DOUBLE_EQ(cell.spread, 0.75);
  EXPECT_EQ(cell.most, 3);
}

TEST(PatternMap, CountsInTheBlocksThatAreUsed) {
  PatternStats stats = kCorner;
  stats.block = {2, 2};
  PatternMap map(stats, {1, 1});
  EXPECT_EQ(map.fullest(2, 2).blocks, 12);
  EXPECT_EQ(map.fullest(2, 2).most, 12);
}

TEST(PatternMap, OfNoBlocksIsEmptyEverywhere) {
  PatternStats stats = kCorner;
  stats.before.assign(9, 0);
  const FullestCell cell = PatternMap(stats, {1, 1}).fullest(4, 2);
  EXPECT_EQ(cell.blocks, 0);
  EXPECT_EQ(cell.spread, 0);
  EXPECT_EQ(cell.most, 0);
}

}  // namespace
}  // namespace tessera::planner::internal
