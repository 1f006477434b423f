#include "tessera/codelets/cost/embedding_cycles.hpp"

#include <gtest/gtest.h>

#include <vector>

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
  EXPECT_EQ(enter_rows_cycles(0, 7, 6) - enter_rows_cycles(0, 0, 6), Cycles(6 * 3 * 2));
}

// PopLibs' 3 + 14 (halves 15), 11 (12) for an entry and 3 for each further value, and our search,
// number and widening beside it.
TEST(EmbeddingCycles, AddUpSlicesAsPopLibsDoesInTheWorstCase) {
  EXPECT_EQ(scatter_add_cycles({16, 5, 1}, DataType::Float, 6),
            Cycles(6 * (3 + 14 + 4 * 6 + 5 * (11 + 2))));
  EXPECT_EQ(scatter_add_cycles({16, 5, 3}, DataType::Half, 6),
            Cycles(6 * (3 + 15 + 4 * 6 + 5 * (12 + 2 + 1 + 2 * (3 + 1)))));
  EXPECT_EQ(scatter_add_cycles({16, 0, 3}, DataType::Half, 6), Cycles());
  using Places = const std::vector<std::int32_t>;
  Places apart{1, 2, 3, 4, 5, 6, 7}, one(7, 3), mixed{1, 1, 1, 2, 3, 3, 4};
  EXPECT_EQ(most_entries(std::span(apart), 3), 3);
  EXPECT_EQ(most_entries(std::span(one), 3), 7) << "one sum belongs to one worker";
  EXPECT_EQ(most_entries(std::span(mixed), 3), 3);
  EXPECT_EQ(most_entries(std::span<const std::int32_t>(), 3), 0);
}

}  // namespace
}  // namespace tessera::codelets
