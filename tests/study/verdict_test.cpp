#include "tessera/study/verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/base/random.hpp"
#include "tessera/host/rates.hpp"
#include "tessera/report/report.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/study/break_even.hpp"
#include "tessera/study/planned_model.hpp"

namespace tessera::study {
namespace {

using report::Better;

device::Machine small_machine() {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 48;
  return machine;
}

std::int64_t one_of(Random& random, std::initializer_list<std::int64_t> values) {
  return values.begin()[random.below(values.size())];
}

// A layer such as those that users have, whose matrix is full.
Problem full_layer(Random& random) {
  const std::int64_t side = one_of(random, {1, 4, 8, 16});
  Problem layer{.size = {1, 16 * one_of(random, {1, 2, 4, 6}), 16 * one_of(random, {1, 2, 4, 6}),
                         one_of(random, {1, 4, 16, 64})},
                .block = {side, side},
                .density = 1,
                .data_type = random.below(2) == 0 ? DataType::Half : DataType::Float};
  layer.grad_a = layer.grad_w = random.below(2) == 0;
  return layer;
}

TEST(Verdict, NeverSaysThatAFullMatrixPaysOnAModelledMachine) {
  Random random(7);
  for (int trial = 0; trial < 200; ++trial) {
    const Problem layer = full_layer(random);
    PlannedModel model(layer, small_machine(), {});
    const Form own{.block = layer.block};
    const Cost sparse = model.sparse(own);
    ASSERT_TRUE(sparse.value) << sparse.note;
    const Cost dense = best_dense(model, own, sparse);
    EXPECT_NE(report::better_of(sparse.value, dense.value, model.error(sparse, dense)),
              Better::Sparse)
        << to_string(layer);
    const auto baseline = report::dense_baseline(layer, small_machine(), {});
    ASSERT_TRUE(baseline.plan);
    EXPECT_LE(double(baseline.plan->cost.cycles.value), *sparse.value) << to_string(layer);
  }
}

TEST(Verdict, NeverSaysThatAFullMatrixPaysOnThisComputer) {
  Random random(8);
  for (int trial = 0; trial < 200; ++trial) {
    const Problem layer = full_layer(random);
    ForecastModel model(layer, host::find_host_rates(""));
    const report::DenseComparison c = compare(model, {.block = layer.block});
    EXPECT_NE(c.better(), Better::Sparse) << to_string(layer);
    ASSERT_TRUE(c.outlook.pays_up_to);
    EXPECT_LT(*c.outlook.pays_up_to, 1) << to_string(layer);
  }
}

TEST(Verdict, IsAboutEqualWithinTheErrorOfTheCosts) {
  EXPECT_EQ(report::better_of(96.0, 100.0, 0.05), Better::Neither);
  EXPECT_EQ(report::better_of(94.0, 100.0, 0.05), Better::Sparse);
  EXPECT_EQ(report::better_of(100.0, 96.0, 0.05), Better::Neither);
  EXPECT_EQ(report::better_of(100.0, 94.0, 0.05), Better::Dense);
  EXPECT_EQ(report::better_of(1.0, std::nullopt, 0.05), Better::Sparse);
  EXPECT_EQ(report::better_of(std::nullopt, 1.0, 0.05), Better::Dense);
  EXPECT_EQ(report::better_of(std::nullopt, std::nullopt, 0.05), Better::Neither);
}

// The density up to which a layer pays is one at which it costs less by more than the error.
TEST(Verdict, SaysThatNothingPaysInsideTheError) {
  const Problem layer{.size = {1, 96, 64, 16}, .density = 0.1, .data_type = DataType::Half};
  PlannedModel model(layer, small_machine(), {});
  const double dense = *model.dense().value;
  for (const std::int64_t side : {1, 4, 16}) {
    const report::DenseComparison c =
        compare(model, {.block = {side, side}, .density = layer.density});
    const double density = c.outlook.pays_up_to.value();
    if (density == 0) continue;
    const Cost there = model.cheapest({.block = {side, side}, .density = density});
    EXPECT_EQ(report::better_of(there.value, dense, c.error), Better::Sparse);
  }
}

}  // namespace
}  // namespace tessera::study
