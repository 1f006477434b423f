#include "tessera/tools/block_study.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/sparse/block_stats.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::tools {
namespace {

LayerArguments small_layer() {
  LayerArguments a;
  a.output_size = 96;
  a.input_size = 64;
  a.batch_size = 16;
  a.phase = PhaseChoice::Fwd;
  a.tiles = 32;
  return a;
}

TEST(BreakEvenDensity, IsTheLastThousandthThatCostsLess) {
  const auto linear = [](double density) { return std::optional(100 * density); };
  EXPECT_DOUBLE_EQ(break_even_density(linear, 25), 0.249);
  EXPECT_DOUBLE_EQ(break_even_density(linear, 25.01), 0.250);
  EXPECT_DOUBLE_EQ(break_even_density(linear, 0), 0);
  EXPECT_DOUBLE_EQ(break_even_density(linear, 101), 1);
}

TEST(BreakEvenDensity, TakesALayerThatDoesNotFitForADearOne) {
  const auto fits_below_half = [](double density) {
    return density < 0.5 ? std::optional(1.0) : std::nullopt;
  };
  EXPECT_DOUBLE_EQ(break_even_density(fits_below_half, 2), 0.499);
}

TEST(BreakEvenDensity, LooksAtFewDensitiesOfACurve) {
  int looks = 0;
  const auto curve = [&](double density) {
    ++looks;
    return std::optional(1000 + 9000 * density + 3000 * density * density);
  };
  for (const double dense : {1100.0, 2000.0, 5000.0, 9000.0}) {
    looks = 0;
    const double density = break_even_density(curve, dense);
    EXPECT_LE(looks, 12);
    EXPECT_LT(curve(density), dense);
    EXPECT_GE(curve(density + 0.001), dense);
    KnownCosts known{.points = {}, .guess = 0.5, .highest = 1};
    for (const double at : {0.001, 0.01, 0.1, 0.4, 0.7, 1.0})
      known.points.emplace_back(at, curve(at));
    looks = 0;
    EXPECT_EQ(break_even_density(curve, dense, known), density);
    EXPECT_LE(looks, 5);
    EXPECT_EQ(break_even_density(curve, dense, {.points = {}, .guess = density, .highest = 1}),
              density);
    EXPECT_EQ(break_even_density(curve, 1e9, {.points = {}, .guess = 0.5, .highest = 0.25}), 0.25);
  }
}

TEST(BreakEvenDensity, IsThatOfALinearScanForRandomCosts) {
  Random random(5);
  for (int trial = 0; trial < 300; ++trial) {
    const double start = random.unit(), power = 0.3 + 2 * random.unit(), fits = random.unit();
    const auto cost = [&](double density) {
      return density > fits ? std::nullopt : std::optional(start + std::pow(density, power));
    };
    const double dense = 1.5 * random.unit();
    double expected = 0;
    for (int step = 1; step <= 1000; ++step)
      if (cost(step / 1000.0).value_or(9) < dense) expected = step / 1000.0;
    EXPECT_EQ(break_even_density(cost, dense), expected) << trial;
    EXPECT_EQ(break_even_density(cost, dense, {.points = {}, .guess = random.unit(), .highest = 1}),
              expected);
  }
}

// The density is found without plans; it must be that of the plans' costs.
TEST(BlockStudy, PaysUpToTheDensityWherePlansCostMoreThanDense) {
  LayerArguments a = small_layer();
  for (const PhaseChoice phase : {PhaseChoice::Fwd, PhaseChoice::All})
    for (const std::int64_t side : {1, 4, 16}) {
      SCOPED_TRACE(side);
      a.phase = phase;
      BlockStudy study(a);
      const Cycles dense = study.dense().plan.value().cost.cycles;
      const auto cost = [&](double density) -> std::optional<double> {
        const BlockPlan found = study.cheapest({side, side}, density);
        return found.plan ? std::optional(double(found.cycles.value)) : std::nullopt;
      };
      const double density = study.pays_up_to({side, side}, dense, nullptr);
      const planner::Plan like = study.plan_random({side, side}, 0.1).plan.value();
      EXPECT_EQ(study.pays_up_to({side, side}, dense, &like), density);
      if (density > 0) {
        EXPECT_LT(cost(density).value_or(1e18), double(dense.value));
      }
      if (density < 1) {
        EXPECT_GE(cost(density + 0.001).value_or(1e18), double(dense.value));
      }
    }
}

TEST(BlockStudy, PlansAPatternInBlocksAsThePlannerDoes) {
  const LayerArguments a = small_layer();
  const auto ones = sparse::cast<double>(sparse::random_pattern(96, 64, {1, 1}, 0.1, 3));
  const auto blocks = in_whole_blocks(ones, {4, 4});
  BlockStudy study(a);
  const BlockPlan found = study.plan_pattern(ones, {4, 4});
  EXPECT_EQ(found.blocks, blocks.blocks());
  EXPECT_DOUBLE_EQ(found.density, double(blocks.blocks()) / (24 * 16));
  EXPECT_DOUBLE_EQ(found.filled_percent,
                   100 * double(ones.blocks()) / double(16 * blocks.blocks()));
  planner::Options options;
  options.constraints.use_dense = false;
  const PatternStats stats = sparse::pattern_stats(blocks);
  ASSERT_TRUE(found.plan);
  EXPECT_EQ(*found.plan, planner::plan_or_throw(study.problem({4, 4}, found.density),
                                                make_machine(a), options, &stats));
  EXPECT_EQ(found.cycles, found.plan->cost.cycles);
}

TEST(BlockStudy, CutsABatchOnlyIfItHasNoPlanAsAWhole) {
  LayerArguments a = small_layer();
  a.batch_size = 64;
  device::Machine machine = make_machine(a);
  const BlockPlan whole =
      BlockStudy(a, problem_of(a), machine).plan_random({4, 4}, 0.5, BatchCut::PartsIfNeeded);
  ASSERT_TRUE(whole.plan);
  EXPECT_EQ(whole.cycles, whole.plan->cost.cycles);
  EXPECT_TRUE(whole.note.empty());
  // Memory in which half of the batch has a plan.
  BlockPlan cut;
  for (machine.tile_memory = Bytes(20'000); whole.plan && !cut.note.starts_with("batch in 2");
       machine.tile_memory = Bytes(machine.tile_memory.value * 95 / 100)) {
    ASSERT_GT(machine.tile_memory, Bytes(1024));
    BlockStudy study(a, problem_of(a), machine);
    cut = study.plan_random({4, 4}, 0.5, BatchCut::PartsIfNeeded);
    if (cut.note.empty()) continue;
    EXPECT_FALSE(study.plan_random({4, 4}, 0.5).plan);
    Problem half = study.problem({4, 4}, 0.5);
    half.size.z = 32;
    ASSERT_TRUE(cut.plan);
    EXPECT_EQ(cut.note, "batch in 2 runs of 32");
    EXPECT_EQ(*cut.plan, planner::plan_or_throw(half, machine, planner::sparse_options()));
    EXPECT_EQ(cut.cycles, 2 * cut.plan->cost.cycles);
  }
}

TEST(BlockStudy, SaysWhyNoPartOfABatchHasAPlan) {
  LayerArguments a = small_layer();
  device::Machine machine = make_machine(a);
  machine.tile_memory = Bytes(1024);
  BlockStudy study(a, problem_of(a), machine);
  const BlockPlan none = study.cheapest({4, 4}, 0.5);
  EXPECT_FALSE(none.plan);
  EXPECT_NE(none.note.find("no plan for"), std::string::npos) << none.note;
}

TEST(BlockStudy, BlocksNeverCostMoreThanTheElementsThatTheyAreMadeOf) {
  BlockStudy study(small_layer());
  for (const std::int64_t side : kBlockSides)
    for (const double density : {0.05, 0.5})
      EXPECT_LE(study.cheapest({side, side}, density).cycles,
                study.plan_random({1, 1}, density).cycles);
}

TEST(BlockStudy, KeepsTheReasonOfABlockThatNoKernelHas) {
  LayerArguments a = small_layer();
  a.partials_type = DataType::Half;
  a.matmul_options = R"({"popLibsParity": true})";
  BlockStudy study(a);
  const BlockPlan elements = study.plan_random({1, 1}, 0.1);
  EXPECT_FALSE(elements.plan);
  EXPECT_NE(elements.note.find("element-wise sparsity has float partials only"), std::string::npos);
  EXPECT_TRUE(study.plan_random({4, 4}, 0.1).plan);
  EXPECT_TRUE(study.dense().plan);
}

TEST(BlockStudy, RefusesAConstraintThatAsksForDense) {
  LayerArguments a = small_layer();
  a.plan_constraints = R"({"useDense": true})";
  EXPECT_THROW(BlockStudy{a}, Error);
}

TEST(BlockStudy, RelaxesARequestOnlyWhereThatWasAllowed) {
  LayerArguments a = small_layer();
  a.matmul_options = R"({"availableMemoryProportion": 0.00001})";
  const BlockPlan failed = BlockStudy(a).plan_random({4, 4}, 0.1);
  EXPECT_FALSE(failed.plan);
  EXPECT_EQ(failed.note.find("no plan for "), 0u);
  a.on_no_fit = OnNoFit::BestEffort;
  const BlockPlan relaxed = BlockStudy(a).plan_random({4, 4}, 0.1);
  EXPECT_TRUE(relaxed.plan);
  EXPECT_EQ(relaxed.note.find("best effort, "), 0u);
}

TEST(StatsInBlocks, AreThoseOfTheMatrixInWholeBlocks) {
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}, {16, 16}, {3, 5}})
    for (const double density : {0.001, 0.05, 0.9}) {
      const auto elements =
          sparse::cast<double>(sparse::random_pattern(67, 130, {1, 1}, density, 5));
      sparse::Csr<double> ones = elements;
      std::ranges::fill(ones.values, 1.0);
      const sparse::Csr<double> blocks = in_whole_blocks(ones, block);
      EXPECT_EQ(sparse::stats_in_blocks(ones, block), sparse::pattern_stats(blocks));
    }
}

}  // namespace
}  // namespace tessera::tools
