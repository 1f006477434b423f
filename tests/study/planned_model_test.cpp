#include "tessera/study/planned_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tessera/sparse/block_stats.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/study/break_even.hpp"

namespace tessera::study {
namespace {

constexpr Problem kLayer{.size = {1, 96, 64, 16}, .data_type = DataType::Half};

device::Machine small_machine() {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 32;
  return machine;
}

Problem forward(Problem layer = kLayer) {
  layer.grad_a = layer.grad_w = false;
  return layer;
}

PlannedModel small_model(const planner::Options& options = {}, bool relaxes = false) {
  return {forward(), small_machine(), options, relaxes};
}

// The density is found with plans at few densities; it must be that of the plans' costs.
TEST(PlannedModel, PaysUpToTheDensityWherePlansCostMoreThanDense) {
  for (const bool trains : {false, true})
    for (const std::int64_t side : {1, 4, 16}) {
      SCOPED_TRACE(side);
      Problem layer = kLayer;
      layer.grad_a = layer.grad_w = trains;
      PlannedModel model(layer, small_machine(), {});
      const double dense = model.dense().value.value();
      Form form{.block = {side, side}};
      const auto cost = [&](double density) {
        form.density = density;
        return model.cheapest(form).value.value_or(1e18);
      };
      const double density = break_even(model, form, dense);
      form.density = 0.1;
      model.begin_at(model.sparse(form));
      EXPECT_EQ(break_even(model, form, dense), density);
      EXPECT_LT(density, 1);
      if (density > 0) {
        EXPECT_LT(cost(density), dense);
      }
      EXPECT_GE(cost(density + 0.001), dense);
    }
}

TEST(PlannedModel, PlansAPatternInBlocksAsThePlannerDoes) {
  const auto ones = sparse::cast<double>(sparse::random_pattern(96, 64, {1, 1}, 0.1, 3));
  const auto blocks = in_whole_blocks(ones, {4, 4});
  PlannedModel model = small_model();
  const Cost found = model.sparse({.block = {4, 4}, .pattern = &ones});
  EXPECT_EQ(found.blocks, blocks.blocks());
  EXPECT_DOUBLE_EQ(found.density, double(blocks.blocks()) / (24 * 16));
  EXPECT_DOUBLE_EQ(found.filled_percent,
                   100 * double(ones.blocks()) / double(16 * blocks.blocks()));
  planner::Options options;
  options.constraints.use_dense = false;
  const PatternStats stats = sparse::pattern_stats(blocks);
  ASSERT_TRUE(found.plan);
  EXPECT_EQ(*found.plan,
            planner::plan_or_throw(model.problem({.block = {4, 4}, .density = found.density}),
                                   small_machine(), options, &stats));
  EXPECT_EQ(found.value, double(found.plan->cost.cycles.value));
}

TEST(PlannedModel, CutsABatchOnlyIfItHasNoPlanAsAWhole) {
  Problem layer = forward();
  layer.size.z = 64;
  device::Machine machine = small_machine();
  const Form form{.block = {4, 4}, .density = 0.5};
  const Cost whole = PlannedModel(layer, machine, {}).cheapest(form);
  ASSERT_TRUE(whole.plan);
  EXPECT_TRUE(whole.note.empty());
  // Memory in which half of the batch has a plan.
  Cost cut;
  for (machine.tile_memory = Bytes(20'000); whole.plan && !cut.note.starts_with("batch in 2");
       machine.tile_memory = Bytes(machine.tile_memory.value * 95 / 100)) {
    ASSERT_GT(machine.tile_memory, Bytes(1024));
    PlannedModel model(layer, machine, {});
    cut = model.cheapest(form);
    if (cut.block != form.block || !cut.note.starts_with("batch in 2")) continue;
    EXPECT_FALSE(model.sparse(form).plan);
    Problem half = model.problem(form);
    half.size.z = 32;
    ASSERT_TRUE(cut.plan);
    EXPECT_EQ(cut.note, "batch in 2 runs of 32");
    EXPECT_EQ(*cut.plan, planner::plan_or_throw(half, machine, planner::sparse_options()));
    EXPECT_EQ(cut.value, 2 * double(cut.plan->cost.cycles.value));
  }
}

TEST(PlannedModel, SaysWhyNoPartOfABatchHasAPlan) {
  device::Machine machine = small_machine();
  machine.tile_memory = Bytes(1024);
  const Cost none =
      PlannedModel(forward(), machine, {}).cheapest({.block = {4, 4}, .density = 0.5});
  EXPECT_FALSE(none.value);
  EXPECT_NE(none.note.find("no plan for"), std::string::npos) << none.note;
}

TEST(PlannedModel, BlocksNeverCostMoreThanTheElementsThatTheyAreMadeOf) {
  PlannedModel model = small_model();
  for (const std::int64_t side : kBlockSides)
    for (const double density : {0.05, 0.5})
      EXPECT_LE(model.cheapest({.block = {side, side}, .density = density}).value,
                model.sparse({.block = {1, 1}, .density = density}).value);
}

TEST(PlannedModel, KeepsTheReasonOfABlockThatNoKernelHas) {
  Problem layer = forward();
  layer.partials_type = DataType::Half;
  planner::Options options;
  options.poplibs_parity = true;
  PlannedModel model(layer, small_machine(), options);
  const Cost elements = model.sparse({.block = {1, 1}, .density = 0.1});
  EXPECT_FALSE(elements.plan);
  EXPECT_NE(elements.note.find("element-wise sparsity has float partials only"), std::string::npos);
  EXPECT_TRUE(model.sparse({.block = {4, 4}, .density = 0.1}).plan);
  EXPECT_TRUE(model.dense().value);
}

TEST(PlannedModel, RelaxesARequestOnlyWhereThatWasAllowed) {
  planner::Options options;
  options.available_memory_proportion = 0.00001;
  const Form form{.block = {4, 4}, .density = 0.1};
  const Cost failed = small_model(options).sparse(form);
  EXPECT_FALSE(failed.value);
  EXPECT_EQ(failed.note.find("no plan for "), 0u);
  const Cost relaxed = small_model(options, /*relaxes=*/true).sparse(form);
  EXPECT_TRUE(relaxed.value);
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
}  // namespace tessera::study
