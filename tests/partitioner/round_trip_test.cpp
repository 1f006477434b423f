#include <gtest/gtest.h>

#include "tessera/tests/partitioner/bucket_checks.hpp"
#include "tessera/tests/partitioner/patterns.hpp"

namespace tessera::partitioner {
namespace {

constexpr std::uint64_t kRoundTripSeed = 20261121;

struct Case {
  std::string pattern;
  sparse::Csr<float> matrix;
  TileGrid grid;
  bool forced = false;
};

std::string describe(const Case& c) {
  const TileGrid& g = c.grid;
  return testing::PrintToString(std::tuple(c.pattern, g.block.rows, g.block.cols, g.splits.x,
                                           g.splits.y, g.splits.z)) +
         testing::PrintToString(std::tuple(g.word_bits, g.grad_w, g.separate_grad_a, g.meta_words,
                                           g.blocks, c.forced)) +
         " seed " + std::to_string(kRoundTripSeed);
}

// Encodes and checks the buckets; returns whether they fitted.
bool survives(const Case& c) {
  SCOPED_TRACE(describe(c));
  const auto result = encode(c.matrix, c.grid, {c.forced});
  EXPECT_NE(result.buckets.has_value(), result.misfit.has_value());
  if (!result.buckets) return false;
  const Buckets& b = *result.buckets;
  EXPECT_EQ(test::find_fault(b, c.matrix), "");
  EXPECT_LE(b.stats.fullest_words, c.grid.meta_words);
  EXPECT_LE(b.stats.fullest_grad_a_words, c.grid.grad_a_words);
  const auto values = to_bucket_order<float, float>(b, c.matrix.values);
  const bool same = decode(b, std::span<const float>(values)) == c.matrix;
  EXPECT_TRUE(same);
  std::vector<float> back(c.matrix.values.size());
  from_bucket_order<float, float>(b, values, back);
  EXPECT_EQ(back, c.matrix.values);
  return true;
}

const Dims kSplits[] = {{1, 1, 1, 1}, {1, 2, 3, 1}, {1, 3, 2, 2}, {1, 1, 4, 3}, {1, 4, 1, 4}};

TileGrid grid_of(const sparse::Csr<float>& matrix, Dims splits) {
  TileGrid grid;
  grid.size = {1, matrix.rows, matrix.cols, 24};
  grid.block = matrix.block;
  grid.splits = splits;
  grid.z_grain = 2;
  return grid;
}

// Every combination of passes on both widths of words.
std::vector<TileGrid> variants(const TileGrid& grid) {
  std::vector<TileGrid> result;
  for (const std::int64_t bits : {16, 32})
    for (const bool grad_w : {false, true})
      for (const bool separate : {false, true}) {
        if (separate && !grid.block.is_element()) continue;
        result.push_back(grid);
        result.back().word_bits = bits;
        result.back().grad_w = grad_w;
        result.back().separate_grad_a = separate;
      }
  return result;
}

class RoundTrip : public testing::TestWithParam<BlockShape> {};

// Capacities from roomy down to what just fits, and below it, where nothing may be returned.
TEST_P(RoundTrip, GivesEveryBitBackAtEveryCapacity) {
  int fitted = 0, spilled = 0, failed = 0;
  for (const auto& kind : test::pattern_kinds(kRoundTripSeed))
    for (const Dims splits : kSplits) {
      const auto matrix = kind.make({12, 10}, GetParam());
      for (const TileGrid& grid : variants(grid_of(matrix, splits))) {
        EXPECT_TRUE(survives({kind.name, matrix, test::with_room(grid, matrix)}));
        for (const double slack : {0.3, 0.05, -0.15}) {
          const Case c{kind.name, matrix, test::with_uniform_capacity(grid, matrix, slack)};
          const auto result = encode(matrix, c.grid);
          if (!survives(c)) {
            ++failed;
            continue;
          }
          ++fitted;
          spilled += result.buckets->stats.moved_blocks > 0;
        }
      }
    }
  EXPECT_GT(fitted, 100);
  EXPECT_GT(spilled, 50);
  EXPECT_GT(failed, 10);
}

TEST_P(RoundTrip, GivesEveryBitBackAfterForcedSpills) {
  for (const auto& kind : test::pattern_kinds(kRoundTripSeed))
    for (const Dims splits : kSplits) {
      if (splits.product() == 1) continue;
      const auto matrix = kind.make({12, 10}, GetParam());
      for (const TileGrid& grid : variants(grid_of(matrix, splits)))
        EXPECT_TRUE(survives({kind.name, matrix, test::with_room(grid, matrix), true}));
    }
}

INSTANTIATE_TEST_SUITE_P(EveryBlock, RoundTrip,
                         testing::Values(BlockShape{1, 1}, BlockShape{2, 3}, BlockShape{4, 4},
                                         BlockShape{8, 8}, BlockShape{16, 16}, BlockShape{1, 4}),
                         [](const auto& p) {
                           return std::to_string(p.param.rows) + "x" + std::to_string(p.param.cols);
                         });

// Exactly what fits is found by trying: the tightest buckets there can be, spilling the most.
TEST(TightRoundTrip, GivesEveryBitBackAtTheLeastCapacity) {
  for (const auto& kind : test::pattern_kinds(kRoundTripSeed)) {
    const auto matrix = kind.make({33, 29}, {});
    for (TileGrid grid : variants(grid_of(matrix, {1, 5, 4, 2}))) {
      grid = test::with_uniform_capacity(grid, matrix, -0.5);
      const auto result = encode(matrix, grid);
      const double factor = result.misfit ? result.misfit->capacity_factor : 1.0;
      EXPECT_TRUE(survives({kind.name, matrix, with_capacity(grid, factor)}));
    }
  }
}

// Sizes, blocks, cuts, densities, widths and capacities that nobody thought of together.
TEST(RandomRoundTrip, GivesEveryBitBack) {
  Random random(kRoundTripSeed);
  const auto up_to = [&random](std::int64_t n) { return 1 + random.below(n); };
  int fitted = 0, failed = 0;
  for (int i = 0; i < 400; ++i) {
    const BlockShape block{up_to(5), up_to(5)};
    const double density = random.unit() * random.unit();
    const auto matrix = test::make_matrix(up_to(40), up_to(40), block,
                                          [&](auto, auto) { return random.unit() < density; });
    TileGrid grid = grid_of(matrix, {1, up_to(5), up_to(5), 1});
    for (auto* splits : {&grid.splits.x, &grid.splits.y})  // no share may be empty
      while (share_of(splits == &grid.splits.x ? matrix.block_rows() : matrix.block_cols(), 1,
                      *splits, *splits - 1)
                 .size() <= 0)
        --*splits;
    grid.splits.z = up_to(4);
    const auto choices = variants(grid);
    grid = choices[static_cast<std::size_t>(random.below(std::ssize(choices)))];
    grid = test::with_uniform_capacity(grid, matrix, random.unit() - 0.2);
    (survives({"random " + std::to_string(i), matrix, grid}) ? fitted : failed) += 1;
  }
  EXPECT_GT(fitted, 100);
  EXPECT_GT(failed, 20);
}

TEST(RoundTripOfOneElement, FitsInTheSmallestBucket) {
  const auto matrix = test::draw({"#"});
  TileGrid grid = grid_of(matrix, {1, 1, 1, 1});
  grid.meta_words = 39 + 3 + 1;
  grid.blocks = 1;
  EXPECT_TRUE(survives({"one element", matrix, grid}));
}

TEST(Encoding, IsTheSameEveryTime) {
  for (const auto& kind : test::pattern_kinds(kRoundTripSeed)) {
    const auto matrix = kind.make({33, 29}, {});
    const TileGrid grid = test::with_uniform_capacity(grid_of(matrix, {1, 5, 4, 2}), matrix, 0.3);
    const auto a = encode(matrix, grid), b = encode(matrix, grid);
    ASSERT_TRUE(a.buckets && b.buckets) << kind.name;
    EXPECT_EQ(a.buckets->meta, b.buckets->meta);
    EXPECT_EQ(a.buckets->source, b.buckets->source);
  }
}

TEST(BucketChecks, RejectBucketsThatAreWrong) {
  const auto matrix = test::draw({"##.#", "#..."});
  TileGrid grid = grid_of(matrix, {1, 1, 2, 1});
  grid.grad_w = true;
  grid.separate_grad_a = true;
  const Buckets good = *encode(matrix, test::with_room(grid, matrix)).buckets;
  ASSERT_EQ(test::find_fault(good, matrix), "");
  const auto words = static_cast<std::size_t>(test::forward_words(good, 0).size());
  for (std::size_t w = 0; w < words; ++w) {
    Buckets bad = good;
    ++std::get<0>(bad.meta)[w];
    EXPECT_NE(test::find_fault(bad, matrix), "") << "forward word " << w;
  }
  Buckets bad = good;
  std::swap(bad.source[0], bad.source[1]);
  EXPECT_NE(test::find_fault(bad, matrix), "");
  bad = good;
  bad.travel = {{2}};
  EXPECT_NE(test::find_fault(bad, matrix), "");
  const auto grad_a_words = static_cast<std::size_t>(test::grad_a_words(good, 0).size());
  for (std::size_t w = 0; w + 1 < grad_a_words; ++w) {
    bad = good;
    ++std::get<0>(bad.grad_a_meta)[w];
    EXPECT_NE(test::find_fault(bad, matrix), "") << "GradA word " << w;
  }
}

}  // namespace
}  // namespace tessera::partitioner
