#include "tessera/partitioner/internal/step_bound.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/base/random.hpp"
#include "tessera/partitioner/internal/one_step.hpp"
#include "tessera/tests/partitioner/bucket_checks.hpp"
#include "tessera/tests/partitioner/exhaustive_spill.hpp"
#include "tessera/tests/partitioner/patterns.hpp"
#include "tessera/tests/support/trials.hpp"

// The bound of steps against trying everything, and one step against maximum flow.
namespace tessera::partitioner {
namespace {

constexpr std::uint64_t kBoundSeed = 1962;

// Cells of so many blocks, each of which may lie anywhere where there is capacity.
internal::Transport transport_of(Dims splits, const std::vector<std::int64_t>& blocks,
                                 std::int64_t capacity) {
  internal::Transport transport{splits, blocks, {}, {}};
  for (const std::int64_t b : blocks) {
    transport.most_in_one.push_back(std::min(b, capacity));
    transport.capacity.push_back(capacity);
  }
  return transport;
}

TEST(LeastSteps, AreNeverAboveWhatTryingEverythingFindsAndMostlyEqual) {
  constexpr Dims kSplits[] = {{1, 1, 4, 1}, {1, 2, 2, 1}, {1, 1, 5, 1}, {1, 2, 3, 1}, {1, 3, 2, 1}};
  Random random(kBoundSeed);
  int spilled = 0, equal = 0, above_one = 0;
  constexpr int kRounds = tessera::test::kIsSanitized ? 16 : 400;
  for (int round = 0; round < kRounds; ++round) {
    test::TinySpill tiny{kSplits[random.below(5)], {}, 2 + random.below(3), 1000, 14};
    for (std::int64_t cell = 0; cell < tiny.splits.x * tiny.splits.y; ++cell)
      tiny.blocks.push_back(random.below(3) == 0 ? tiny.bucket_blocks + random.below(7)
                                                 : random.below(tiny.bucket_blocks + 1));
    const auto least = test::try_every_spill(tiny);
    if (!least) continue;
    const std::int64_t bound =
        internal::least_steps(transport_of(tiny.splits, tiny.blocks, tiny.bucket_blocks));
    EXPECT_LE(bound, least->steps) << "round " << round << " of seed " << kBoundSeed;
    spilled += least->steps > 0;
    equal += least->steps > 0 && bound == least->steps;
    above_one += bound > 1;
  }
  EXPECT_GT(spilled, kRounds / 4);
  EXPECT_GT(3 * equal, 2 * spilled);
  EXPECT_GT(above_one, kRounds * 3 / 40);
}

// Neighbours along y that hold three times what they can: everything moves at most `steps` away.
TEST(LeastSteps, OfAHotStretchAlongYAreItsExcess) {
  std::vector<std::int64_t> blocks(300, 0);
  std::fill(blocks.begin() + 280, blocks.end(), 30);
  std::fill(blocks.begin(), blocks.begin() + 10, 30);
  const auto transport = transport_of({1, 1, 300, 1}, blocks, 10);
  EXPECT_EQ(internal::least_steps(transport), 60);
  EXPECT_EQ(internal::any_routing(transport, Travel{{61}}).unplaced, 0);
}

TEST(LeastSteps, OfOneHotCellAndOfHotPartitionsAlongXFollowFromTheirSizes) {
  std::vector<std::int64_t> blocks(400, 0);
  blocks[7] = 51;
  EXPECT_EQ(internal::least_steps(transport_of({1, 20, 20, 1}, blocks, 10)), 5);
  std::fill(blocks.begin(), blocks.begin() + 40, 31);
  blocks[7] = 31;
  EXPECT_EQ(internal::least_steps(transport_of({1, 20, 20, 1}, blocks, 10)), 3);
  std::fill(blocks.begin(), blocks.end(), 10);
  EXPECT_EQ(internal::least_steps(transport_of({1, 20, 20, 1}, blocks, 10)), 0);
}

TEST(OneStepRouting, PlacesWhatMaximumFlowPlacesWithTheLeastTravel) {
  Random random(kBoundSeed);
  int possible = 0, impossible = 0;
  for (int round = 0; round < 300; ++round) {
    internal::Transport transport{{1, 1 + random.below(6), 1 + random.below(5), 1}, {}, {}, {}};
    for (std::int64_t cell = 0; cell < transport.splits.x * transport.splits.y; ++cell) {
      transport.blocks.push_back(random.below(9));
      transport.most_in_one.push_back(
          std::min<std::int64_t>(transport.blocks.back(), 2 + random.below(8)));
      transport.capacity.push_back(3 + random.below(7));
    }
    if (random.below(4) == 0) transport.most_away = 3;
    for (std::int64_t d = 0; d < transport.splits.x; ++d) {
      if (d == 0 && transport.splits.y == 1) continue;
      Travel travel;
      travel.y_end.assign(static_cast<std::size_t>(d) + 1, 0);
      travel.y_end.front() = 1 + (d == 0);
      if (d > 0) travel.y_end.back() = 1;
      const auto fast = internal::one_step_routing(transport, d, d == 0);
      const auto flow = internal::cheapest_routing(transport, travel);
      ASSERT_EQ(fast.unplaced == 0, flow.unplaced == 0)
          << "round " << round << ", seed " << kBoundSeed;
      (fast.unplaced == 0 ? possible : impossible) += 1;
      if (fast.unplaced > 0) continue;
      EXPECT_EQ(fast.shipments, flow.shipments);
      EXPECT_EQ(std::pair(fast.travel, fast.moved), std::pair(flow.travel, flow.moved));
    }
  }
  EXPECT_GT(possible, 100);
  EXPECT_GT(impossible, 100);
}

// As many cells as are not searched exhaustively; hot ones pass on what they have no room for
// through eight that are not, each a jump away from the one before.
TEST(FewestSteps, OfHotRowsAreOneJumpInChains) {
  const auto matrix = test::make_matrix(400, 400, {}, [](std::int64_t r, std::int64_t c) {
    return (r * 7 + c * 3) % 20 < (r < 40 ? 9 : 4);
  });
  TileGrid grid;
  grid.size = {1, 400, 400, 4};
  grid.splits = {1, 20, 20, 1};
  grid.workers = 1;
  grid.blocks = matrix.blocks() * 11 / 10 / 400;
  grid.meta_words = 300;
  const auto result = encode(matrix, grid);
  ASSERT_TRUE(result.buckets);
  EXPECT_EQ(test::find_fault(*result.buckets, matrix), "");
  EXPECT_EQ(result.buckets->stats.steps, 1);
  EXPECT_EQ(result.buckets->stats.lower_bound_steps, 1);
  EXPECT_GT(result.buckets->stats.greedy_steps, 3);
  EXPECT_GT(result.buckets->travel.x_end(), 2);
}

// One quadrant twice as dense: more than any one step can do, and two or three are found.
TEST(FewestSteps, OfAHotQuadrantAreNearTheirBound) {
  const auto matrix = test::make_matrix(400, 400, {}, [](std::int64_t r, std::int64_t c) {
    return (r * 7 + c * 3) % 20 < (r < 200 && c < 200 ? 8 : 4);
  });
  TileGrid grid;
  grid.size = {1, 400, 400, 4};
  grid.splits = {1, 20, 20, 1};
  grid.workers = 1;
  grid.blocks = matrix.blocks() * 11 / 10 / 400;
  grid.meta_words = 300;
  const auto result = encode(matrix, grid);
  ASSERT_TRUE(result.buckets);
  EXPECT_EQ(test::find_fault(*result.buckets, matrix), "");
  EXPECT_EQ(result.buckets->stats.lower_bound_steps, 2);
  EXPECT_LE(result.buckets->stats.steps, 3);
  EXPECT_GT(result.buckets->stats.greedy_steps, 10);
}

}  // namespace
}  // namespace tessera::partitioner
