#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/tests/planner/recorded_plans.hpp"
#include "tessera/tests/runtime/planned_phases.hpp"

// The cycles of a plan against those that the engine counts, phase by phase, over random training
// layers of all types and blocks. The plans know the pattern, as those of the tools do.
namespace tessera::runtime {
namespace {

constexpr std::uint64_t kSeed = 2026;
constexpr int kLayers = 60;

// Draws a training layer. Types and blocks come in turn, so every pair of them occurs.
Layer draw_layer(Random& random, int i) {
  const BlockShape blocks[] = {{1, 1}, {4, 4}, {1, 1}, {8, 8}, {1, 1}, {16, 16}};
  const DataType types[] = {DataType::Half, DataType::Float, DataType::BFloat16};
  Layer layer;
  layer.options = planner::sparse_options();
  layer.problem = {
      .size = {1, 16 * (2 + random.below(38)), 16 * (2 + random.below(38)), 4 + random.below(120)},
      .block = blocks[i % 6],
      .density = 0.02 + 0.2 * random.unit(),
      .data_type = types[i / 6 % 3],
      .grad_a = true,
      .grad_w = true};
  layer.machine.tiles = 4 + random.below(300);
  return layer;
}

// Returns the phases of all layers; they are run once for all tests.
const std::vector<PhaseCycles>& all_phases() {
  static const std::vector<PhaseCycles> phases = [] {
    const auto executor = make_executor(ExecutorKind::Threads, 1);
    std::vector<PhaseCycles> all;
    Random random(kSeed);
    for (int i = 0; i < kLayers; ++i) append_layer(draw_layer(random, i), i, *executor, all);
    return all;
  }();
  return phases;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

TEST(PlannedCycles, OfWholeLayersAreWithinOnePercentAtTheMedianAndSixAtMost) {
  std::map<int, PhaseCycles> layers;
  for (const PhaseCycles& p : all_phases()) {
    layers[p.layer].planned += p.planned;
    layers[p.layer].counted += p.counted;
  }
  ASSERT_GE(layers.size(), 50u);
  std::vector<double> errors;
  for (const auto& [number, layer] : layers) {
    errors.push_back(std::abs(layer.ratio() - 1));
    EXPECT_LE(errors.back(), 0.06) << "layer " << number << " of seed " << kSeed;
  }
  EXPECT_LE(median(errors), 0.01);
}

// Element kernels divide rows between workers, which the plan knows in the mean only.
bool is_element_kernel(const PhaseCycles& p) {
  return p.element && p.phase == Phase::Distribute && p.pass != Pass::GradW;
}

// Returns the relative errors of phases. Errors below 2 % of the layer's pass count as none,
// because small phases consist of few blocks.
std::vector<double> errors_of(const std::vector<PhaseCycles>& phases) {
  std::map<std::pair<int, Pass>, double> passes;
  for (const PhaseCycles& p : phases) passes[{p.layer, p.pass}] += p.counted;
  std::vector<double> errors;
  for (const PhaseCycles& p : phases) {
    const double error = std::abs(p.planned - p.counted);
    const bool small = error <= 0.02 * passes[{p.layer, p.pass}];
    errors.push_back(small ? 0 : error / p.counted);
  }
  return errors;
}

void expect_within(const std::vector<PhaseCycles>& phases, double most, double most_of_elements) {
  const std::vector<double> errors = errors_of(phases);
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const PhaseCycles& p = phases[i];
    EXPECT_LE(errors[i], is_element_kernel(p) ? most_of_elements : most)
        << "layer " << p.layer << ", " << to_string(p.pass) << ", " << to_string(p.phase)
        << ": planned " << p.planned << ", counted " << p.counted;
  }
}

TEST(PlannedCycles, OfEveryPhaseAreWithinTenPercentButForOneInAHundredWithinTwelve) {
  std::vector<PhaseCycles> phases = all_phases();
  expect_within(phases, 0.12, 0.2);
  std::erase_if(phases, is_element_kernel);
  const std::vector<double> errors = errors_of(phases);
  EXPECT_LE(std::ranges::count_if(errors, [](double e) { return e > 0.1; }),
            std::ssize(errors) / 100);
}

// Every small row of the table, trained on 256 tiles. A third of them is asked for in one layout,
// and another third with a batch in parts, so that GradW takes turns.
TEST(PlannedCycles, OfEveryPhaseOfRecordedLayersAreWithinTenPercent) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  std::vector<PhaseCycles> phases;
  int number = 0, with_two_layouts = 0, with_turns = 0;
  for (const planner::RecordedPlan& row : planner::read_recorded_plans()) {
    Layer layer{row.problem()};
    const Dims size = layer.problem.size;
    ++number;
    if (size.x * size.y > 1 << 20 || size.x * size.y * size.z > 1 << 26) continue;
    layer.problem.grad_a = layer.problem.grad_w = true;
    layer.machine.tiles = 256;
    layer.options = planner::sparse_options();
    layer.options.per_pass_plans = number % 3 == 0;
    if (number % 3 == 2 && size.z >= 64) layer.options.constraints.z = 2;
    const auto plan = append_layer(layer, number, *executor, phases);
    if (!plan) continue;
    with_two_layouts += plan->backward.empty() ? 0 : 1;
    with_turns += plan->layout_of(Pass::GradW).partition.z > 1 ? 1 : 0;
  }
  std::set<int> layers;
  for (const PhaseCycles& p : phases) layers.insert(p.layer);
  EXPECT_GE(layers.size(), 60u);
  EXPECT_GE(with_two_layouts, 10);
  EXPECT_GE(with_turns, 20);
  // One element kernel of GradA in a pinned partition is planned 28 % too slow.
  expect_within(phases, 0.1, 0.3);
  std::erase_if(phases, [](const PhaseCycles& p) { return !is_element_kernel(p); });
  const std::vector<double> errors = errors_of(phases);
  EXPECT_LE(std::ranges::count_if(errors, [](double e) { return e > 0.15; }), 1);
}

// A turn of GradW is an exchange and a compute step of one part of z.
TEST(PlannedCycles, OfGradWsTurnsAreBookedWhereTheyRun) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  std::vector<PhaseCycles> phases;
  Random random(kSeed);
  for (int i = 0; i < 24; ++i) {
    Layer layer = draw_layer(random, i);
    layer.options.per_pass_plans = false;
    if (i >= 12) layer.options.operand_placement = Placement::AtHome;
    layer.options.constraints.use_dense.reset();  // a pinned count asks for buckets
    layer.options.constraints.z = 2 + i / 2 % 3;
    layer.options.constraints.grad_w_exchange_buckets = i % 2 == 0;
    append_layer(layer, i, *executor, phases);
  }
  std::erase_if(phases, [](const PhaseCycles& p) { return p.pass != Pass::GradW; });
  for (const Phase turns : {Phase::Distribute, Phase::Propagate})
    EXPECT_GE(std::ranges::count_if(
                  phases, [&](const PhaseCycles& p) { return p.phase == turns && p.counted > 0; }),
              8);
  expect_within(phases, 0.12, 0.12);
}

// Few blocks in a cell, whose buckets travel in the layout of GradA: that the fullest cell often
// holds one block more than it has buckets was not priced, and the passes took twice as long.
TEST(PlannedCycles, OfTravellingBucketsWithFewBlocksAreWithinTenPercentFromTheDensityAlone) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  Layer layer;
  layer.options = planner::sparse_options();
  layer.problem = {.size = {1, 480, 104, 483},
                   .block = {4, 8},
                   .density = 0.1919,
                   .data_type = DataType::Float,
                   .grad_a = true,
                   .grad_w = true};
  std::vector<PhaseCycles> phases;
  for (int i = 0; i < 4; ++i) {
    const auto plan = append_layer(layer, i, *executor, phases, /*knows_pattern=*/false);
    ASSERT_TRUE(plan);
    EXPECT_TRUE(plan->layout_of(Pass::GradW).grad_w_exchange_buckets);
  }
  std::erase_if(phases, [](const PhaseCycles& p) {
    return p.pass != Pass::GradW || (p.phase != Phase::Distribute && p.phase != Phase::Propagate);
  });
  ASSERT_EQ(phases.size(), 8u);
  for (const PhaseCycles& p : phases) EXPECT_NEAR(p.ratio(), 1, 0.1) << to_string(p.phase);
}

// A layer of few blocks a tile, planned from its density alone. The fullest of its tiles holds
// three blocks in one pattern and four in the next, so one pattern may take a third more or less
// than was planned; the plan has the mean.
Layer small_layer(int number, Random& random) {
  static constexpr BlockShape kBlocks[] = {{1, 1}, {4, 4}, {8, 8}, {4, 8}, {16, 16}, {5, 3}};
  static constexpr std::int64_t kTiles[] = {64, 304, 1472};
  const BlockShape block = kBlocks[number % 6];
  Layer layer;
  layer.options = planner::sparse_options();
  layer.machine.tiles = kTiles[random.below(3)];
  layer.problem = {.size = {1, block.rows * (1 + std::int64_t(random.below(480 / block.rows))),
                            block.cols * (1 + std::int64_t(random.below(480 / block.cols))),
                            1 + std::int64_t(random.below(500))},
                   .block = block,
                   .density = 0.003 * std::pow(100.0, random.unit()),
                   .data_type = number / 6 % 2 == 0 ? DataType::Float : DataType::Half,
                   .grad_a = true,
                   .grad_w = true};
  return layer;
}

TEST(PlannedCycles, OfMultiplyFromTheDensityAloneAreTheMeanOfManyPatterns) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  Random random(7);
  constexpr int kSmallLayers = 36, kPatterns = 6;
  std::vector<double> ratios;
  for (int number = 0; number < kSmallLayers; ++number) {
    const Layer layer = small_layer(number, random);
    const Dims size = layer.problem.size_in_blocks();
    if (double(size.x * size.y) * layer.problem.density < double(layer.problem.block.area()))
      continue;
    std::map<Pass, std::pair<double, double>> sums;  // planned and counted
    for (int pattern = 0; pattern < kPatterns; ++pattern) {
      std::vector<PhaseCycles> phases;
      append_layer(layer, 1000 * pattern + number, *executor, phases, /*knows_pattern=*/false);
      for (const PhaseCycles& p : phases)
        if (p.phase == Phase::Distribute && p.planned > 0) {
          sums[p.pass].first += p.planned;
          sums[p.pass].second += p.counted;
        }
    }
    for (const auto& [pass, sum] : sums) ratios.push_back(sum.first / sum.second);
  }
  ASSERT_GE(std::ssize(ratios), 90);
  const auto off = std::ranges::count_if(ratios, [](double r) { return std::abs(r - 1) > 0.1; });
  EXPECT_LE(off, std::ssize(ratios) / 8);
  EXPECT_GT(*std::ranges::min_element(ratios), 0.7);
  EXPECT_LT(*std::ranges::max_element(ratios), 1.4);
}

// Few large blocks in all, with the pattern known. The density promises 2.1 blocks where there are
// two, and edges of cells cut blocks into parts whose places are known: priced by chance, passes
// were planned up to 1.7 times too slow.
TEST(PlannedCycles, OfFewLargeBlocksOfAKnownPatternAreWithinTenPercent) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  Random random(71);
  std::vector<double> ratios;
  for (int number = 0; number < 150; ++number) {
    static constexpr std::int64_t kTiles[] = {64, 304, 1472};
    Layer layer;
    layer.options = planner::sparse_options();
    layer.machine.tiles = kTiles[random.below(3)];
    layer.problem = {.block = {16, 16}, .grad_a = true, .grad_w = true};
    layer.problem.size.x = 16 * (1 + random.below(30));
    layer.problem.size.y = 16 * (1 + random.below(30));
    layer.problem.size.z = 1 + random.below(500);
    layer.problem.density = 0.003 * std::pow(100.0, random.unit());
    layer.problem.data_type = number % 2 == 0 ? DataType::Float : DataType::Half;
    const Dims size = layer.problem.size_in_blocks();
    const double blocks = double(size.x * size.y) / 256 * layer.problem.density;
    if (blocks < 2 || blocks > 12) continue;
    std::vector<PhaseCycles> phases;
    append_layer(layer, number, *executor, phases);
    for (const PhaseCycles& p : phases)
      if (p.phase == Phase::Distribute && p.planned > 0) ratios.push_back(p.ratio());
  }
  ASSERT_GE(std::ssize(ratios), 120);
  const auto off = std::ranges::count_if(ratios, [](double r) { return std::abs(r - 1) > 0.1; });
  EXPECT_LE(off, std::ssize(ratios) / 100);
  EXPECT_LT(*std::ranges::max_element(ratios), 1.15);
  EXPECT_GT(*std::ranges::min_element(ratios), 0.9);
}

// Draws a layer whose cells have a whole number of rows for each of a cell's buckets, so that the
// buckets end near the ends of rows.
Layer whole_rows_layer(Random& random, int number) {
  const std::int64_t x = 4 + random.below(40), y = 1 + random.below(3), z = 2 + random.below(11);
  Layer layer;
  layer.options = planner::sparse_options();
  layer.options.constraints.x = x;
  layer.options.constraints.y = y;
  layer.options.constraints.z = z;
  layer.problem = {.size = {1, x * z * (2 + std::int64_t(random.below(10))),
                            y * (64 + std::int64_t(random.below(200))),
                            z * 8 * (1 + std::int64_t(random.below(4)))},
                   .density = 0.05 + 0.5 * random.unit(),
                   .data_type = number % 3 == 0 ? DataType::Half : DataType::Float,
                   .grad_a = true,
                   .grad_w = true};
  return layer;
}

// A part of one more row may double the work of one of six workers, for which the others wait.
TEST(PlannedCycles, OfBucketsThatEndNearRowEndsAreWithinFourPercentInTheMean) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  Random random(5);
  std::vector<double> errors;
  for (int number = 0; number < 60; ++number) {
    std::vector<PhaseCycles> phases;
    append_layer(whole_rows_layer(random, number), number, *executor, phases, number % 2 == 0);
    for (const PhaseCycles& p : phases)
      if (p.pass == Pass::Fwd && p.phase == Phase::Distribute && p.planned > 0)
        errors.push_back(std::abs(std::log(p.ratio())));
  }
  ASSERT_GE(std::ssize(errors), 50);
  const double sum = std::accumulate(errors.begin(), errors.end(), 0.0);
  EXPECT_LT(sum / double(std::ssize(errors)), 0.036);
}

TEST(PlannedCycles, OfElementKernelsAreWithinTwentyPercentAndFourAtTheMedian) {
  for (const Pass pass : {Pass::Fwd, Pass::GradA}) {
    std::vector<double> ratios;
    for (const PhaseCycles& p : all_phases())
      if (is_element_kernel(p) && p.pass == pass) ratios.push_back(p.ratio());
    ASSERT_GE(ratios.size(), 25u);
    EXPECT_NEAR(median(ratios), 1, 0.04) << to_string(pass);
    EXPECT_GT(*std::ranges::min_element(ratios), 0.8) << to_string(pass);
    EXPECT_LT(*std::ranges::max_element(ratios), 1.2) << to_string(pass);
  }
}

}  // namespace
}  // namespace tessera::runtime
