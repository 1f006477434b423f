#include "tessera/codelets/cost/embedding_cycles.hpp"

#include <gtest/gtest.h>

namespace tessera::codelets {
namespace {

// By hand from the published estimate, for six workers.
TEST(GatherCycles, AreThoseOfThePublishedEstimate) {
  EXPECT_EQ(gather_cycles(0, DataType::Float, 6), Cycles(18 + 6 * 23));
  EXPECT_EQ(gather_cycles(1, DataType::Float, 6), Cycles(18 + 6 * (23 + 5)));
  EXPECT_EQ(gather_cycles(12, DataType::Float, 6), Cycles(18 + 6 * (23 + 5)));
  EXPECT_EQ(gather_cycles(13, DataType::Float, 6), Cycles(18 + 6 * (23 + 5 + 5 - 3)));
  EXPECT_EQ(gather_cycles(14, DataType::Float, 6), Cycles(18 + 6 * (23 + 8)));
  EXPECT_EQ(gather_cycles(3, DataType::Half, 6), Cycles(18 + 6 * (23 + 14)));
  EXPECT_EQ(gather_cycles(24, DataType::Half, 6), Cycles(18 + 6 * (23 + 8)));
  EXPECT_EQ(gather_cycles(1025, DataType::Half, 6), Cycles(18 + 6 * (23 + 8 + 5 * 42 + 10 - 5)));
}

TEST(EmbeddingCycles, CountInstructionsOfTheSlowestWorker) {
  EXPECT_EQ(walk_rows_cycles({}, kCopyInstructions, 6), Cycles(0)) << "no row of the cell";
  EXPECT_EQ(walk_rows_cycles({{}, 13, 10}, kCopyInstructions, 6),
            Cycles(6 * (15 + 8 * 3 + 4 * 10)));
  EXPECT_EQ(walk_rows_cycles({{}, 13, 10}, kAddInstructions, 6), Cycles(6 * (15 + 8 * 3 + 5 * 10)));
  EXPECT_EQ(scatter_add_cycles(13, 20, 6), Cycles(6 * (15 + 3 * 3 + 4 * 4)));
  EXPECT_EQ(enter_rows_cycles(0, 7, 6) - enter_rows_cycles(0, 0, 6), Cycles(6 * 3 * 2));
}

}  // namespace
}  // namespace tessera::codelets
