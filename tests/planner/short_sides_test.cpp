#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/planner/explain.hpp"
#include "tessera/planner/internal/pattern_counts.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/no_fit.hpp"
#include "tessera/planner/planner.hpp"

// Layers whose sides are shorter than their blocks: a block is then cut into more parts than the
// side has elements, and the counts of the statistics are asked about all of them.
namespace tessera::planner {
namespace {

struct Layer {
  Problem problem;
  device::Machine machine = device::machine_preset("gc200");
  Options options;
  PatternStats stats;
};

// Returns the statistics of a pattern in which each block is non-zero with the problem's density.
PatternStats random_stats(const Problem& p, Random& random) {
  const std::int64_t rows = ceil_div(p.size.x, p.block.rows),
                     cols = ceil_div(p.size.y, p.block.cols);
  PatternStats stats;
  stats.block = p.block;
  stats.row_counts.assign(std::size_t(rows), 0);
  stats.col_counts.assign(std::size_t(cols), 0);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j)
      if (random.unit() < p.density) {
        ++stats.row_counts[std::size_t(i)];
        ++stats.col_counts[std::size_t(j)];
      }
  return stats;
}

Layer layer(Dims size, std::int64_t side, DataType type, double density, std::int64_t tiles) {
  Layer l;
  l.problem.size = size;
  l.problem.block = {side, side};
  l.problem.data_type = type;
  l.problem.density = density;
  l.machine.tiles = tiles;
  Random random(7);
  l.stats = random_stats(l.problem, random);
  return l;
}

std::optional<PlanResult> plan_pinned(Layer l, Dims parts, bool dense) {
  l.options.constraints = {.x = parts.x, .y = parts.y, .z = parts.z, .use_dense = dense};
  try {
    PlanResult result = plan(l.problem, l.machine, l.options, &l.stats);
    return result.has_plan ? std::optional(std::move(result)) : std::nullopt;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument) << error.what();
    return std::nullopt;
  }
}

// Returns the fewest cycles of any cut, where each cut is pinned in turn.
std::optional<Cycles> least_cycles(const Layer& l) {
  std::optional<Cycles> least;
  const std::int64_t tiles = l.machine.tiles;
  for (std::int64_t x = 1; x <= tiles; ++x)
    for (std::int64_t y = 1; x * y <= tiles; ++y)
      for (std::int64_t z = 1; x * y * z <= tiles; ++z)
        for (const bool dense : {false, true})
          if (const auto result = plan_pinned(l, {1, x, y, z}, dense))
            least = std::min(least.value_or(result->plan.cost.cycles), result->plan.cost.cycles);
  return least;
}

void expect_cheapest(Layer l) {
  SCOPED_TRACE(to_string(l.problem) + " on " + std::to_string(l.machine.tiles));
  l.options.per_pass_plans = false;
  const PlanResult best = internal::plan_with_buckets({l.problem, l.machine, l.options, &l.stats});
  const std::optional<Cycles> least = least_cycles(l);
  ASSERT_EQ(best.has_plan, least.has_value());
  if (best.has_plan) {
    EXPECT_EQ(best.plan.cost.cycles, *least);
  }
}

TEST(ShortSides, ArePlannedAsCheaplyAsTheCheapestPinnedCut) {
  for (const DataType type : {DataType::Float, DataType::Half})
    for (const std::int64_t side : {8, 16, 32})
      for (const Dims size : {Dims{1, 16, 1, 32}, {1, 1, 16, 5}, {1, 3, 2, 4}, {1, 40, 7, 1}})
        for (const std::int64_t tiles : {2, 5}) {
          expect_cheapest(layer(size, side, type, 1, tiles));
          expect_cheapest(layer(size, side, type, 0.5, tiles));
        }
}

TEST(ShortSides, ArePlannedWithoutDenseBlocks) {
  for (const std::int64_t tiles : {2, 1472})
    for (const std::int64_t rows : {16, 257}) {
      Layer l = layer({1, rows, 1, 32}, 16, DataType::Float, 1, tiles);
      l.options.constraints.use_dense = false;
      const PlanResult result = plan(l.problem, l.machine, l.options, &l.stats);
      EXPECT_EQ(result.status, PlanStatus::Found) << result.reason;
      EXPECT_FALSE(result.plan.use_dense);
    }
}

TEST(ShortSides, HaveAPlanOrAReasonButNotBoth) {
  Random random(19);
  for (int i = 0; i < 60; ++i) {
    const std::int64_t side = std::int64_t{4} << random.below(4);
    Layer l =
        layer({1, 1 + random.below(2 * side), 1 + random.below(side), 1 + random.below(40)}, side,
              random.below(2) == 0 ? DataType::Float : DataType::Half, 0.9, 1 + random.below(6));
    l.machine.tile_memory = Bytes(1024 << random.below(5));
    SCOPED_TRACE(to_string(l.problem));
    const PlanResult result = plan(l.problem, l.machine, l.options, &l.stats);
    if (result.has_plan) {
      EXPECT_NO_THROW(explain(l.problem, l.machine, l.options, &l.stats, result.plan));
    } else {
      EXPECT_NO_THROW(explain_no_fit(l.problem, l.machine, l.options, &l.stats));
    }
  }
}

TEST(Explain, CutsALayerFinerThanItsMachineHasTiles) {
  Layer l = layer({1, 24, 24, 8}, 1, DataType::Half, 0.3, 1);
  l.options.constraints.use_dense = false;
  const Plan one = plan_or_throw(l.problem, l.machine, l.options, &l.stats);
  const Explanation e = explain(l.problem, l.machine, l.options, &l.stats, one);
  for (const TermShare& term : e.terms) {
    const auto cut = std::ranges::find(term.finer_cut, Axis::Y, &FinerCut::axis);
    ASSERT_NE(cut, term.finer_cut.end());
    EXPECT_EQ(std::tuple(cut->from, cut->to), std::tuple(1, 2));
    EXPECT_LT(std::abs(cut->change.value), one.cost.cycles.value);
  }
}

const std::vector<std::int32_t> kCounts = {2, 0, 5, 1, 5};

TEST(CellRows, SumTheCellsThatEveryRowMeetsForAnyNumberOfParts) {
  for (const std::int64_t down : {1, 3})
    for (const std::int64_t across : {1, 2, 4}) {
      const internal::CellRows rows(kCounts, down, across);
      for (std::int64_t parts = 0; parts < 30; ++parts) {
        std::int64_t sum = 0;
        for (const std::int32_t count : kCounts) sum += down * std::min(count * across, parts);
        EXPECT_EQ(rows.at(parts), sum) << down << " x " << across << ", " << parts;
      }
      EXPECT_EQ(rows.at(std::int64_t{1} << 62), down * across * 13);
    }
}

TEST(CellRows, RefuseANegativeNumberOfParts) {
  EXPECT_THROW(internal::CellRows(kCounts, 1, 1).at(-1), Error);
  EXPECT_EQ(internal::CellRows({}, 1, 1).at(5), 0);
}

TEST(RunningSums, CountTheBlocksBeforeEveryRowAndRefuseOthers) {
  const internal::RunningSums sums(kCounts, 3, 2);
  ASSERT_EQ(sums.rows(), 15);
  std::int64_t before = 0;
  for (std::int64_t row = 0; row < sums.rows(); ++row) {
    EXPECT_EQ(sums.before(row), before);
    before += 2 * kCounts[std::size_t(row / 3)];
  }
  EXPECT_EQ(sums.before(15), before);
  EXPECT_THROW(sums.before(16), Error);
  EXPECT_THROW(sums.before(-1), Error);
}

TEST(RunningSums, FindTheFullestOfEvenShares) {
  const internal::RunningSums sums(kCounts, 1, 1);
  EXPECT_EQ(sums.fullest_share(1), 13);
  EXPECT_EQ(sums.fullest_share(5), 5);
  EXPECT_EQ(sums.fullest_share(3), 6);  // rows 0..1, 2..3, 4
}

}  // namespace
}  // namespace tessera::planner
