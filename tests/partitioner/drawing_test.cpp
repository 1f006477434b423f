#include <gtest/gtest.h>

#include "tessera/tests/partitioner/bucket_checks.hpp"
#include "tessera/tests/partitioner/patterns.hpp"

// Small matrices whose words were worked out by hand. One worker and one batch column per tile, so
// that a record is a header of 9 words, one worker of 5, and its rows; a column word is 4 * column.
namespace tessera::partitioner {
namespace {

using test::draw;
using test::forward_words;
using test::numbers;

TileGrid plain_grid(const sparse::Csr<float>& matrix, Dims splits) {
  TileGrid grid;
  grid.size = {1, matrix.rows, matrix.cols, splits.z};
  grid.block = matrix.block;
  grid.splits = splits;
  grid.workers = 1;
  return test::with_room(grid, matrix);
}

Buckets encoded(const sparse::Csr<float>& matrix, const TileGrid& grid,
                Spilling spilling = Spilling::FewestSteps) {
  const auto result = encode(matrix, grid, {.spilling = spilling});
  EXPECT_TRUE(result.buckets.has_value()) << result.misfit->message;
  EXPECT_EQ(test::find_fault(*result.buckets, matrix), "");
  return *result.buckets;
}

TEST(DrawnBuckets, HoldLongRowsFirstAndTiesByRow) {
  const auto matrix = draw({".#..", "#.#.", "....", ".###", "##.."});
  const Buckets b = encoded(matrix, plain_grid(matrix, {1, 1, 1, 1}));
  EXPECT_EQ(forward_words(b, 0), numbers("1 0 0 8 30 1 3 14 1 | 0 1 0 3 5 | 3 3 4 8 12 | 1 2 0 8 | "
                                         "4 2 0 4 | 0 1 4 | 0"));
  EXPECT_EQ((std::vector<std::int32_t>(b.source.begin(), b.source.begin() + 8)),
            (std::vector<std::int32_t>{3, 4, 5, 1, 2, 6, 7, 0}));
}

// Four tiles of 2 x 3: rows and columns count from the cell's first, positions through the matrix.
TEST(DrawnBuckets, OfFourBySixOnFourTilesCountInsideTheirCells) {
  const auto matrix = draw({"#..#.#",  //
                            ".#....",  //
                            "......",  //
                            "##.#.."});
  const Buckets b = encoded(matrix, plain_grid(matrix, {1, 2, 2, 1}));
  EXPECT_EQ(forward_words(b, 0), numbers("1 0 0 2 20 1 1 14 1 | 0 1 0 1 5 | 0 1 0 | 1 1 4 | 0"));
  EXPECT_EQ(forward_words(b, 1), numbers("2 0 1 2 18 1 0 14 1 | 0 1 0 0 5 | 0 2 0 8 | 0"));
  EXPECT_EQ(forward_words(b, 2), numbers("3 1 0 2 18 1 0 14 1 | 0 1 0 0 5 | 1 2 0 4 | 0"));
  EXPECT_EQ(forward_words(b, 3), numbers("4 1 1 1 17 1 0 14 1 | 0 1 0 0 5 | 1 1 0 | 0"));
  const std::vector<std::vector<std::int32_t>> positions{{0, 3}, {1, 2}, {4, 5}, {6}};
  for (std::size_t bucket = 0; bucket < positions.size(); ++bucket)
    for (std::size_t i = 0; i < positions[bucket].size(); ++i)
      EXPECT_EQ(b.source[bucket * b.grid.blocks + i], positions[bucket][i]) << bucket;
}

TEST(DrawnBuckets, OfAnEmptyMatrixAreEndMarkers) {
  const auto matrix = draw({"..", ".."});
  const Buckets b = encoded(matrix, plain_grid(matrix, {1, 2, 1, 1}));
  EXPECT_EQ(forward_words(b, 0), numbers("0"));
  EXPECT_EQ(forward_words(b, 1), numbers("0"));
  EXPECT_TRUE(b.travel.stays_home());
}

TEST(DrawnBuckets, CountBlockPositionsInElements) {
  const auto matrix = draw({".#", "##"}, {2, 3});
  TileGrid grid = plain_grid(matrix, {1, 1, 1, 1});
  EXPECT_EQ(forward_words(encoded(matrix, grid), 0),
            numbers("1 0 0 18 14 1 0 | 2 1 0 3 | 0 0 3 | 0"));
}

// The last row is the cheapest to move; the next cell below in y is nearest.
TEST(DrawnBuckets, SpillWholeRowsFromTheEnd) {
  const auto matrix = draw({"##..", "#..."});
  TileGrid grid = plain_grid(matrix, {1, 1, 2, 1});
  grid.blocks = 2;
  const Buckets b = encoded(matrix, grid);
  EXPECT_EQ(forward_words(b, 0), numbers("1 0 0 2 18 1 0 14 1 | 0 1 0 0 5 | 0 2 0 4 | 0"));
  EXPECT_EQ(forward_words(b, 1), numbers("1 0 0 1 17 1 0 14 1 | 0 1 0 0 5 | 1 1 0 | 0"));
  EXPECT_EQ(b.travel, (Travel{{2}}));
  EXPECT_EQ(b.stats.moved_blocks, 1);
  EXPECT_EQ(b.stats.records, 2);
}

// A row longer than any bucket is cut; its own bucket takes the end of it back.
TEST(DrawnBuckets, CutARowThatFitsNowhere) {
  const auto matrix = draw({"####...."});
  TileGrid grid = plain_grid(matrix, {1, 1, 2, 1});
  grid.blocks = 3;
  const Buckets b = encoded(matrix, grid);
  EXPECT_EQ(forward_words(b, 0), numbers("1 0 0 3 19 1 0 14 1 | 0 1 0 0 5 | 0 3 4 8 12 | 0"));
  EXPECT_EQ(forward_words(b, 1), numbers("1 0 0 1 17 1 0 14 1 | 0 1 0 0 5 | 0 1 0 | 0"));
}

// Two tiles of one cell hold 4 blocks each: one row, and four rows. The fourth of these does not
// fit, and comes to the other tile's record at 3 words where a record of its own takes 17.
TEST(DrawnBuckets, MergeWithTheRecordOfTheSameCell) {
  const auto matrix = draw({"####", "#...", "#...", "#...", "#..."});
  TileGrid grid = plain_grid(matrix, {1, 1, 1, 2});
  grid.meta_words = 23 + 1;
  const Buckets b = encoded(matrix, grid);
  EXPECT_EQ(forward_words(b, 0),
            numbers("1 0 0 5 23 1 1 14 1 | 0 1 0 1 5 | 0 4 0 4 8 12 | 4 1 0 | 0"));
  EXPECT_EQ(forward_words(b, 1),
            numbers("1 0 0 3 23 1 2 14 1 | 0 1 0 2 5 | 1 1 0 | 2 1 0 | 3 1 0 | 0"));
  EXPECT_TRUE(b.travel.stays_home());
}

// Row 0 is cut between both tiles of the cell: four blocks and one. The one does not fit beside row
// 1, and joins the four at a single word; a row of its own would take three, a record seventeen.
TEST(DrawnBuckets, JoinThePartsOfARowThatMeetAgain) {
  const auto matrix = draw({"#####", "###.."});
  TileGrid grid = plain_grid(matrix, {1, 1, 1, 2});
  grid.meta_words = 21 + 1;
  const Buckets b = encoded(matrix, grid);
  EXPECT_EQ(forward_words(b, 0), numbers("1 0 0 5 21 1 0 14 1 | 0 1 0 0 5 | 0 5 0 4 8 12 16 | 0"));
  EXPECT_EQ(forward_words(b, 1), numbers("1 0 0 3 19 1 0 14 1 | 0 1 0 0 5 | 1 3 0 4 8 | 0"));
}

// Nine rows of one block, all in cell (1, 1) of 3 x 3; only the capacity in blocks limits.
TEST(DrawnBuckets, TravelNoFurtherThanTheyMust) {
  auto matrix = test::make_matrix(
      27, 27, {}, [](std::int64_t r, std::int64_t c) { return r >= 9 && r < 18 && c == 9; });
  TileGrid grid = plain_grid(matrix, {1, 3, 3, 1});
  struct Expected {
    std::int64_t capacity;
    Travel greedy, fewest;  // the same steps; one along x and one along y is nearer than two
  };
  for (const auto& [capacity, greedy, fewest] :
       std::vector<Expected>{{9, {{1}}, {{1}}},
                             {5, {{2}}, {{2}}},
                             {3, {{3}}, {{2, 1}}},
                             {2, {{3, 2}}, {{3, 2}}},
                             {1, {{3, 3, 3}}, {{3, 3, 3}}}}) {
    grid.blocks = capacity;
    EXPECT_EQ(encoded(matrix, grid, Spilling::Greedy).travel.y_end, greedy.y_end) << capacity;
    EXPECT_EQ(encoded(matrix, grid).travel.y_end, fewest.y_end) << capacity;
  }
}

TEST(DrawnBuckets, TellTravelInWords) {
  EXPECT_EQ(travel_words({{2, 0, 1}}, 4), (std::vector<std::uint32_t>{3, 2, 4, 2, 0, 1}));
}

}  // namespace
}  // namespace tessera::partitioner
