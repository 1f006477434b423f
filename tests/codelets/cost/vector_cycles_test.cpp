#include "tessera/codelets/cost/vector_cycles.hpp"

#include <gtest/gtest.h>

namespace tessera::codelets {
namespace {

constexpr DataType kHalf = DataType::Half, kFloat = DataType::Float;

TEST(CastCycles, MatchThePublishedEstimate) {
  EXPECT_EQ(cast_cycles(1000, kFloat, kHalf, 6), Cycles(660));
}

TEST(ReduceCycles, MatchThePublishedEstimates) {
  EXPECT_EQ(reduce_cycles(1000, 8, kFloat, kHalf, 6), Cycles(7752));
  EXPECT_EQ(reduce_cycles(1000, 8, kFloat, kFloat, 6), Cycles(8004));
  EXPECT_EQ(reduce_cycles(1000, 8, kHalf, kHalf, 6), Cycles(4224));
  EXPECT_EQ(reduce_cycles(37, 5, kFloat, kHalf, 6), Cycles(456));
}

TEST(TransposeBlocksCycles, MatchThePublishedEstimates) {
  EXPECT_EQ(transpose_blocks_cycles(100, {4, 4}, kHalf, 6), Cycles(589));
  EXPECT_EQ(transpose_blocks_cycles(100, {8, 8}, kHalf, 6), Cycles(4465));
  EXPECT_EQ(transpose_blocks_cycles(100, {16, 16}, kHalf, 6), Cycles(10177));
  EXPECT_EQ(transpose_blocks_cycles(100, {4, 4}, kFloat, 6), Cycles(4465));
  EXPECT_EQ(transpose_blocks_cycles(100, {8, 8}, kFloat, 6), Cycles(9361));
}

TEST(TransposeBlocksCycles, AreZeroForNoBlocks) {
  EXPECT_EQ(transpose_blocks_cycles(0, {8, 8}, kFloat, 6), Cycles(0));
}

TEST(RearrangeCycles, MatchThePublishedEstimates) {
  EXPECT_EQ(rearrange_cycles(10, 16, 64, kHalf, 6), Cycles(4818));
  EXPECT_EQ(rearrange_cycles(10, 8, 64, kFloat, 6), Cycles(5154));
}

TEST(ZeroCycles, GrowByOneCyclePerWordOfTheBusiestWorker) {
  EXPECT_EQ(zero_cycles(0, 6), Cycles(0));
  EXPECT_EQ(zero_cycles(48, 6), Cycles(6 * 16));
  EXPECT_EQ(zero_cycles(49, 6), Cycles(6 * 17));
}

TEST(BroadcastCycles, ShareTheBusOnlyBetweenWholePairsOrAllTiles) {
  constexpr ExchangeWidth kWidth{4, 2};
  EXPECT_EQ(exchange_cycles(9, kWidth), Cycles(3));
  EXPECT_EQ(broadcast_cycles(9, 1, 6, kWidth), Cycles(3));
  EXPECT_EQ(broadcast_cycles(9, 2, 6, kWidth), Cycles(2));
  EXPECT_EQ(broadcast_cycles(9, 3, 6, kWidth), Cycles(3));
  EXPECT_EQ(broadcast_cycles(9, 3, 3, kWidth), Cycles(2));
}

}  // namespace
}  // namespace tessera::codelets
