#include "tessera/planner/internal/dense_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tessera/base/int_math.hpp"
#include "tessera/base/random.hpp"
#include "tessera/tests/planner/exhaustive_search.hpp"

// The bounded search of dense plans against the one that prices every cut.
namespace tessera::planner::internal {
namespace {

constexpr std::uint64_t kSeed = 2026;

// A pass of a random layer on a machine of random size, with the memory that it may use.
struct Asked {
  DenseCase c;
  DenseLimits limits;
  Problem problem;
};

Asked draw(Random& random, int i) {
  const auto any = [&](std::int64_t most) {
    return 1 + std::int64_t(random.below(std::uint64_t(most)));
  };
  const DataType types[] = {DataType::Half, DataType::Float, DataType::BFloat16};
  const DataType type = types[i % 3];
  const bool half_sums = type == DataType::Half && i % 2 == 0;
  auto machine = device::machine_preset("gc200");
  machine.tiles = any(i % 20 == 0 ? 1472 : 60);
  const std::int64_t groups = i % 7 == 0 ? std::min<std::int64_t>(machine.tiles, 3) : 1;
  Asked asked{.problem = {.size = {groups, any(250), any(250), any(120)}, .data_type = type}};
  const Pass pass = i % 5 == 0 ? Pass::GradW : i % 5 == 1 ? Pass::GradA : Pass::Fwd;
  asked.c = {.product = dense_product(asked.problem, pass),
             .groups = groups,
             .machine = machine,
             .kernel = dense_kernel(machine, type, half_sums ? DataType::Half : DataType::Float)};
  // Every fourth tile has so little memory that many products take rounds or have no plan.
  const std::int64_t tile = i % 4 == 0 ? 4096 * any(16) : machine.tile_memory.value;
  asked.limits = {tile * 6 / 10, tile};
  return asked;
}

void expect_same(const DenseSearch& found, const DenseSearch& all) {
  ASSERT_EQ(found.best.has_value(), all.best.has_value());
  if (!found.best) {
    EXPECT_EQ(found.least_bytes, all.least_bytes);
    return;
  }
  const DenseCut &a = found.best->cut, &b = all.best->cut;
  EXPECT_EQ(a.rounds, b.rounds);
  EXPECT_EQ(a.parts, b.parts);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.neighbours, b.neighbours);
  EXPECT_EQ(found.best->estimate.cycles, all.best->estimate.cycles);
}

TEST(DenseSearch, FindsTheCutOfTheExhaustiveSearchOnTwoHundredProblems) {
  Random random(kSeed);
  int plans = 0, rounds = 0;
  std::int64_t priced = 0, all_cuts = 0;
  for (int i = 0; i < 200; ++i) {
    const Asked asked = draw(random, i);
    SCOPED_TRACE(testing::Message()
                 << "problem " << i << " of seed " << kSeed << ": " << to_string(asked.problem));
    const DenseSearch found = search_dense(asked.c, asked.limits);
    const DenseSearch all = search_dense_exhaustively(asked.c, asked.limits);
    expect_same(found, all);
    if (!found.best) continue;
    ++plans;
    rounds += found.best->cut.rounds.product() > 1;
    priced += found.estimates;
    all_cuts += all.estimates;
  }
  EXPECT_GE(plans, 150);
  EXPECT_LT(plans, 200);
  EXPECT_GE(rounds, 5);
  EXPECT_LT(5 * priced, all_cuts);
}

TEST(DenseSearch, FindsTheSameCutBelowALimitAndNoneAtItsOwnCost) {
  Random random(kSeed + 1);
  int plans = 0;
  for (int i = 0; i < 200; ++i) {
    Asked asked = draw(random, i);
    SCOPED_TRACE(testing::Message() << "problem " << i << ": " << to_string(asked.problem));
    const DenseSearch found = search_dense(asked.c, asked.limits);
    asked.limits.fewer_than = kAnyCycles;
    EXPECT_EQ(search_dense(asked.c, asked.limits).best.has_value(), found.best.has_value());
    if (!found.best) continue;
    ++plans;
    asked.limits.fewer_than = found.best->estimate.cycles + 1;
    expect_same(search_dense(asked.c, asked.limits), found);
    asked.limits.fewer_than = found.best->estimate.cycles;
    EXPECT_FALSE(search_dense(asked.c, asked.limits).best);
  }
  EXPECT_GE(plans, 150);
}

TEST(DenseSearch, FloorIsNeverAboveTheBestCutAndCloseToItForLargeProducts) {
  Random random(kSeed + 2);
  for (int i = 0; i < 300; ++i) {
    const Asked asked = draw(random, i);
    const DenseSearch found = search_dense(asked.c, asked.limits);
    if (!found.best) continue;
    EXPECT_LE(dense_floor(asked.c), found.best->estimate.cycles)
        << "problem " << i << ": " << to_string(asked.problem);
  }
  for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW}) {
    const Problem large{.size = {1, 4096, 4096, 512}};
    const DenseCase c{
        .product = dense_product(large, pass),
        .machine = device::machine_preset("gc200"),
        .kernel = dense_kernel(device::machine_preset("gc200"), DataType::Half, DataType::Float)};
    const std::int64_t tile = c.machine.tile_memory.value;
    const DenseSearch found = search_dense(c, {tile * 6 / 10, tile});
    ASSERT_TRUE(found.best);
    EXPECT_LE(dense_floor(c), found.best->estimate.cycles);
    EXPECT_GE(2 * dense_floor(c), found.best->estimate.cycles);
  }
}

// 16 x 65536 by 65536 x 16 on 64 tiles: with the inner dimension in 64 parts a tile receives 2 x 16
// x 1024 halves, and of the 256 floats of results its 64th part from 63 others.
TEST(DenseSearch, FloorCountsTheBytesThatATileReceives) {
  DenseCase c{
      .product = dense_product({.size = {1, 16, 65536, 16}}, Pass::Fwd),
      .machine = device::machine_preset("gc200"),
      .kernel = dense_kernel(device::machine_preset("gc200"), DataType::Half, DataType::Float)};
  c.machine.tiles = 64;
  c.machine.tiles_per_exchange_bus = 1;
  c.machine.exchange_bytes_per_cycle = 1;
  const std::int64_t all = dense_floor(c);
  c.machine.exchange_bytes_per_cycle = std::int64_t{1} << 40;  // multiplication alone
  EXPECT_EQ(all - dense_floor(c), 2 * 16 * 1024 * 2 + 63 * 4 * 4);
}

TEST(DenseSearch, LowerBoundIsNeverAboveTheCostOfAPossibleCut) {
  Random random(kSeed);
  double closest = 0, closer = 0, cuts = 0;
  for (int i = 0; i < 3000; ++i) {
    const Asked asked = draw(random, i);
    const ProductShape& size = asked.c.product.size;
    DenseCut cut{
        .rounds = {1 + std::int64_t(random.below(3)), 1, 1 + std::int64_t(random.below(3))},
        .weights = random.below(2) == 0 ? Side::Left : Side::Right,
        .neighbours = random.below(2) == 0 ? Side::Left : Side::Right};
    if (cut.rounds.rows > size.rows || cut.rounds.columns > size.columns) continue;
    const ProductShape grain = dense_grain(asked.c.kernel, cut.weights);
    ProductShape tile;
    const auto cut_into = [&](std::int64_t whole, std::int64_t g, std::int64_t& parts,
                              std::int64_t& first) {
      const std::int64_t grains = ceil_div(whole, g);
      const std::int64_t share = 1 + std::int64_t(random.below(std::uint64_t(grains)));
      parts = ceil_div(grains, share);
      first = share_of(whole, g, parts, 0).size();
    };
    cut_into(ceil_div(size.rows, cut.rounds.rows), grain.rows, cut.parts.rows, tile.rows);
    cut_into(size.inner, grain.inner, cut.parts.inner, tile.inner);
    cut_into(ceil_div(size.columns, cut.rounds.columns), grain.columns, cut.parts.columns,
             tile.columns);
    if (cut.parts.product() * asked.c.groups > asked.c.machine.tiles) continue;
    const DenseEstimate e = dense_estimate(asked.c, cut);
    const std::int64_t bound = dense_lower_bound(asked.c, cut, tile);
    EXPECT_LE(bound, e.cycles) << to_string(asked.problem);
    const std::int64_t close = dense_close_bound(asked.c, cut, tile);
    EXPECT_LE(close, e.cycles) << to_string(asked.problem);
    EXPECT_GE(close, bound) << to_string(asked.problem);
    closer += double(close) / double(e.cycles), ++cuts;
    EXPECT_LE(cycles_of_multiply_add(asked.c) * double(cut.rounds.product() * tile.product()),
              double(e.cycles))
        << to_string(asked.problem);
    EXPECT_LE(dense_slices(asked.c, tile), e.temp) << to_string(asked.problem);
    EXPECT_LE(dense_homes(asked.c) / cut.parts.product(), e.resident) << to_string(asked.problem);
    closest = std::max(closest, double(bound) / double(e.cycles));
  }
  EXPECT_GT(closest, 0.8);  // else the bound would be of little use
  EXPECT_GT(closer / cuts, 0.8);
}

// The search rules out the fewest parts of the columns by the bound of more.
TEST(DenseSearch, LowerBoundDoesNotRiseWithThePartsOfTheColumns) {
  Random random(kSeed + 1);
  int fell = 0;
  for (int i = 0; i < 600; ++i) {
    const DenseCase c = draw(random, i).c;
    const Side weights = random.below(2) == 0 ? Side::Left : Side::Right;
    const std::int64_t grain = dense_grain(c.kernel, weights).columns;
    const auto up_to = [&](std::int64_t most) { return 1 + random.below(most); };
    ProductShape tile{up_to(c.product.size.rows), up_to(c.product.size.inner), 0};
    DenseCut cut{.parts = {1, up_to(4), 0}, .weights = weights};
    std::int64_t least = kUnbounded;
    for (std::int64_t& parts = ++cut.parts.columns;
         parts <= ceil_div(c.product.size.columns, grain); ++parts) {
      tile.columns = share_of(c.product.size.columns, grain, parts, 0).size();
      const std::int64_t bound = dense_lower_bound(c, cut, tile);
      EXPECT_LE(bound, least) << to_string(c.product.size) << " in " << parts << " parts";
      fell += bound < least;
      least = bound;
    }
  }
  EXPECT_GT(fell, 3000);
}

}  // namespace
}  // namespace tessera::planner::internal
