#include <gtest/gtest.h>

#include "tessera/base/random.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/visit_cost.hpp"
#include "tessera/tests/partitioner/bucket_checks.hpp"
#include "tessera/tests/partitioner/patterns.hpp"

namespace tessera::partitioner {
namespace {

constexpr std::uint64_t kEvenLoadSeed = 1861;
constexpr LoadCost kCost{.kernel = {.workers = 1}, .shift = Cycles(300)};

// Cells of 20 x 20 blocks that differ in density.
sparse::Csr<float> uneven_matrix(Random& random, Dims splits, double spread) {
  std::vector<double> density;
  for (std::int64_t cell = 0; cell < splits.x * splits.y; ++cell)
    density.push_back(0.3 * (1 + spread * (random.unit() - 0.5)));
  return test::make_matrix(20 * splits.x, 20 * splits.y, {}, [&](std::int64_t r, std::int64_t c) {
    return random.unit() < density[std::size_t(r / 20 * splits.y + c / 20)];
  });
}

TileGrid grid_of(const sparse::Csr<float>& matrix, Dims splits) {
  TileGrid grid;
  grid.size = {1, matrix.rows, matrix.cols, 4};
  grid.splits = splits;
  grid.workers = 1;
  grid.meta_words = 400;
  return grid;
}

// The visits as the codelets' formula sees the real words: the slowest cell at home, then the
// slowest at every displacement. One bucket a cell.
Cycles cycles_of_words(const Buckets& buckets) {
  const TileGrid& grid = buckets.grid;
  Cycles sum;
  for (std::int64_t dx = 0; dx < buckets.travel.x_end(); ++dx)
    for (std::int64_t dy = 0; dy < buckets.travel.y_end[std::size_t(dx)]; ++dy) {
      Cycles slowest;
      for (std::int64_t cell = 0; cell < grid.buckets(); ++cell) {
        const std::int64_t x = (cell / grid.splits.y + grid.splits.x - dx) % grid.splits.x;
        const std::int64_t y = (cell % grid.splits.y + grid.splits.y - dy) % grid.splits.y;
        const void* const words = buckets.meta_words(x * grid.splits.y + y);
        slowest = std::max(
            slowest,
            codelets::visit_cycles({.key = {codelets::Operation::Fwd, codelets::Format::Element,
                                            DataType::Float, DataType::Float, grid.word_bits},
                                    .buckets = {&words, 1},
                                    .sub_group = codelets::sub_group_id(
                                        cell / grid.splits.y, cell % grid.splits.y, grid.splits.y),
                                    .z = grid.z_per_tile(),
                                    .workers = grid.workers}));
      }
      sum += slowest + ((dx + dy) > 0 ? kCost.shift : Cycles(0));
    }
  return sum;
}

TEST(EvenLoad, ChangesNothingOrGainsTwoPercentByItsEstimate) {
  Random random(kEvenLoadSeed);
  int cheaper = 0, really_cheaper = 0, really_dearer = 0;
  for (int round = 0; round < 40; ++round)
    for (const Spilling spilling : {Spilling::FewestSteps, Spilling::Greedy}) {
      const Dims splits = round % 2 == 0 ? Dims{1, 4, 5, 1} : Dims{1, 1, 9, 1};
      const auto matrix = uneven_matrix(random, splits, 0.5);
      TileGrid grid = grid_of(matrix, splits);
      grid.blocks = matrix.blocks() / grid.buckets() + 4;
      const auto plain = encode(matrix, grid, {.spilling = spilling});
      const auto even = encode(matrix, grid, {.spilling = spilling, .even_load = kCost});
      ASSERT_TRUE(plain.buckets && even.buckets)
          << "round " << round << " of seed " << kEvenLoadSeed;
      EXPECT_EQ(test::find_fault(*even.buckets, matrix), "");
      EXPECT_EQ(plain.buckets->stats.load, Cycles(0));  // not asked for
      const SpillStats& stats = even.buckets->stats;
      EXPECT_GT(2 * stats.load, cycles_of_words(*even.buckets)) << "it is an estimate";
      EXPECT_LT(stats.load, 2 * cycles_of_words(*even.buckets));
      if (stats.load == stats.uneven_load) {
        EXPECT_EQ(even.buckets->travel, plain.buckets->travel);
        EXPECT_EQ(even.buckets->source, plain.buckets->source);
        continue;
      }
      // A gain of less than 2 % is within the error of the estimate and changes nothing.
      EXPECT_LT(stats.load, stats.uneven_load - Cycles(stats.uneven_load.value / 50));
      ++cheaper;
      really_cheaper += cycles_of_words(*even.buckets) < cycles_of_words(*plain.buckets);
      really_dearer += cycles_of_words(*even.buckets) > cycles_of_words(*plain.buckets);
    }
  RecordProperty("cheaper", cheaper);
  RecordProperty("really_cheaper", really_cheaper);
  EXPECT_GT(cheaper, 20);
  EXPECT_GT(really_cheaper, 5 * really_dearer);
}

TEST(EvenLoad, MovesNothingWhereNothingSpills) {
  Random random(kEvenLoadSeed);
  const Dims splits{1, 3, 3, 1};
  const auto matrix = uneven_matrix(random, splits, 1.5);
  TileGrid grid = grid_of(matrix, splits);
  grid.meta_words = 900;
  grid.blocks = 400;
  const auto result = encode(matrix, grid, {.even_load = kCost});
  EXPECT_EQ(result.buckets->stats.moved_blocks, 0);
  EXPECT_EQ(result.buckets->stats.load, result.buckets->stats.uneven_load);
  EXPECT_GT(result.buckets->stats.load, Cycles(0));
}

// The visit at home ends when the cell has worked off the buckets of all its partitions of z.
TEST(EvenLoad, CountsAllBucketsOfACellAtHome) {
  Random random(kEvenLoadSeed);
  const auto matrix = uneven_matrix(random, {1, 3, 3, 1}, 1.5);
  const auto load_with = [&](std::int64_t z_parts) {
    TileGrid grid = grid_of(matrix, {1, 3, 3, z_parts});
    grid.size.z = 4 * z_parts;
    grid.meta_words = 900;
    grid.blocks = 400;
    return encode(matrix, grid, {.even_load = kCost}).buckets->stats.load;
  };
  EXPECT_GT(load_with(2), load_with(1));
}

// Shifts that cost nothing and shifts that cost everything.
TEST(EvenLoad, TakesMoreStepsOnlyWhereTheyAreCheap) {
  Random random(kEvenLoadSeed);
  int more = 0;
  for (int round = 0; round < 20; ++round) {
    const Dims splits{1, 1, 9, 1};
    const auto matrix = uneven_matrix(random, splits, 0.8);
    TileGrid grid = grid_of(matrix, splits);
    grid.blocks = matrix.blocks() / grid.buckets() + 4;
    LoadCost cost = kCost;
    cost.shift = Cycles(1'000'000);
    const auto dear = encode(matrix, grid, {.even_load = cost});
    cost.shift = Cycles(0);
    const auto cheap = encode(matrix, grid, {.even_load = cost});
    ASSERT_TRUE(dear.buckets && cheap.buckets);
    const std::int64_t fewest = encode(matrix, grid).buckets->stats.steps;
    EXPECT_EQ(dear.buckets->stats.steps, fewest);
    EXPECT_GE(cheap.buckets->stats.steps, fewest);
    more += cheap.buckets->stats.steps > fewest;
  }
  EXPECT_GT(more, 0);
}

}  // namespace
}  // namespace tessera::partitioner
