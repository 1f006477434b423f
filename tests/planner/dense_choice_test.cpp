#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tessera/base/random.hpp"
#include "tessera/planner/explain.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/plan_cache.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/tests/planner/recorded_plans.hpp"

// The choice between R dense without buckets and R in buckets, where useDense is open.
namespace tessera::planner {
namespace {

using ::testing::HasSubstr;

PlannedLayer square(std::int64_t side, std::int64_t block, double density) {
  PlannedLayer l;
  l.problem = {.size = {1, side, side, 256},
               .block = {block, block},
               .density = density,
               .data_type = DataType::Half};
  l.machine = device::machine_preset("gc200");
  return l;
}

Options with_dense(Options options, bool dense) {
  options.constraints.use_dense = dense;
  return options;
}

Cycles cycles_of(const PlannedLayer& l, const Options& options) {
  return plan_or_throw(l.problem, l.machine, options).cost.cycles;
}

TEST(DenseChoice, IsDenseAt2048SquareWithDensityThreeTenths) {
  for (const DataType type : {DataType::Half, DataType::Float})
    for (const std::int64_t batch : {256, 1024}) {
      PlannedLayer l = square(2048, 1, 0.3);
      l.problem.data_type = type;
      l.problem.size.z = batch;
      const Plan open = plan_or_throw(l.problem, l.machine, l.options);
      EXPECT_TRUE(open.use_dense);
      EXPECT_LT(open.cost.cycles, cycles_of(l, with_dense(l.options, false)));
      const Plan dense = plan_or_throw(l.problem, l.machine, with_dense(l.options, true));
      EXPECT_LE(open.cost.cycles, dense.cost.cycles);
      // Halves with this batch are 2 % cheaper in 16 x 16 blocks than without buckets.
      const bool has_blocks = type == DataType::Half && batch == 256;
      EXPECT_EQ(open.dense.has_value(), !has_blocks);
      if (!has_blocks) {
        EXPECT_EQ(open, dense);
      }
    }
}

TEST(DenseChoice, IsSparseIn16x16BlocksAtDensityOneTwentieth) {
  for (const bool trains : {false, true}) {
    PlannedLayer l = square(2048, 16, 0.05);
    l.problem.grad_a = l.problem.grad_w = trains;
    const Plan open = plan_or_throw(l.problem, l.machine, l.options);
    EXPECT_FALSE(open.dense);
    EXPECT_FALSE(open.use_dense);
    EXPECT_EQ(open, plan_or_throw(l.problem, l.machine, with_dense(l.options, false)));
  }
}

// Floors of the passes alone decide here, so no dense cut is priced.
TEST(DenseChoice, CostsNoSearchWhereSparseClearlyWins) {
  const PlannedLayer l = square(4096, 16, 0.02);
  EXPECT_EQ(plan(l.problem, l.machine, l.options).evaluations,
            internal::plan_with_buckets({l.problem, l.machine, l.options, nullptr}).evaluations);
}

PlannedLayer any_layer(Random& random) {
  const auto any = [&](std::int64_t most) {
    return 1 + std::int64_t(random.below(std::uint64_t(most)));
  };
  PlannedLayer l;
  const std::int64_t blocks[] = {1, 4, 8, 16};
  const std::int64_t side = blocks[random.below(4)];
  l.problem = {.size = {any(2), side * any(300 / side), side * any(300 / side), any(80)},
               .block = {side, side},
               .density = 0.02 * double(any(50)),
               .data_type = random.below(2) == 0 ? DataType::Half : DataType::Float,
               .grad_a = random.below(2) == 0,
               .grad_w = random.below(2) == 0};
  l.machine = device::machine_preset("gc200");
  l.machine.tiles = 2 * any(40);
  // Some tiles are so small that one of the two, or both, do not fit.
  if (random.below(3) == 0) l.machine.tile_memory = Bytes(2048 * any(30));
  return l;
}

TEST(DenseChoice, IsNeverDearerThanEitherPlanOfRandomLayers) {
  Random random(18);
  int dense_plans = 0, sparse_plans = 0, alone = 0;
  for (int i = 0; i < 150; ++i) {
    const PlannedLayer l = any_layer(random);
    SCOPED_TRACE(testing::Message() << i << ": " << to_string(l.problem));
    const PlanResult open = plan(l.problem, l.machine, l.options);
    const PlanResult sparse = plan(l.problem, l.machine, with_dense(l.options, false));
    const PlanResult dense = plan(l.problem, l.machine, with_dense(l.options, true));
    ASSERT_EQ(open.has_plan, sparse.has_plan || dense.has_plan);
    if (!open.has_plan) continue;
    for (const PlanResult* other : {&sparse, &dense})
      if (other->has_plan) {
        EXPECT_LE(open.plan.cost.cycles, other->plan.cost.cycles);
      }
    if (open.plan.dense) {
      EXPECT_EQ(open.plan, dense.plan);
    }
    dense_plans += open.plan.dense.has_value();
    sparse_plans += !open.plan.use_dense;
    alone += !sparse.has_plan;
  }
  EXPECT_GE(dense_plans, 20);
  EXPECT_GE(sparse_plans, 10);
  EXPECT_GE(alone, 1);
}

TEST(DenseChoice, LeavesRequestsForBucketsAlone) {
  const PlannedLayer l = square(512, 1, 0.9);
  ASSERT_TRUE(plan_or_throw(l.problem, l.machine, l.options).dense);
  const std::function<void(Options&)> asks[] = {
      [](Options& o) { o.constraints.x = 4; },
      [](Options& o) { o.constraints.grad_w_exchange_buckets = true; },
      [](Options& o) { o.constraints.use_dense = false; },
      [](Options& o) { o.partitioner_force_bucket_spills = true; },
      [](Options& o) { o.operand_placement = Placement::AtHome; },
      [](Options& o) { o = parity_options(); }};
  for (const auto& ask : asks) {
    Options options = l.options;
    ask(options);
    EXPECT_FALSE(plan_or_throw(l.problem, l.machine, options).dense);
  }
}

TEST(DenseChoice, IsSavedLoadedAndCachedUnchanged) {
  PlannedLayer l = square(512, 1, 0.9);
  l.plan = plan_or_throw(l.problem, l.machine, l.options);
  ASSERT_TRUE(l.plan.dense);
  EXPECT_EQ(plan_from_json(plan_to_json(l), "f"), l);
  PlanCache cache;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cache.plan(l.problem, l.machine, l.options).plan, l.plan);
  EXPECT_EQ(cache.counts().planned, 1);
}

TEST(DenseChoice, IsExplainedOnBothSides) {
  PlannedLayer dense = square(512, 1, 0.9), sparse = square(512, 16, 0.05);
  const auto explained = [](const PlannedLayer& l) {
    return to_text(explain(l.problem, l.machine, l.options, nullptr,
                           plan_or_throw(l.problem, l.machine, l.options)));
  };
  EXPECT_THAT(explained(dense), HasSubstr("  R dense, without buckets: chosen\n"));
  EXPECT_THAT(explained(dense), HasSubstr("  ElementFwd: not chosen\n    +"));
  EXPECT_THAT(explained(sparse), HasSubstr("  R dense, without buckets: not chosen\n    +"));
}

}  // namespace
}  // namespace tessera::planner
