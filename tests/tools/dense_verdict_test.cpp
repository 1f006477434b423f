#include "tessera/tools/dense_verdict.hpp"

#include <gtest/gtest.h>

namespace tessera::tools {
namespace {

planner::PlanCost cost_of(std::vector<std::int64_t> passes) {
  constexpr Pass kPasses[] = {Pass::Fwd, Pass::GradA, Pass::GradW};
  planner::PlanCost cost;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    cost.passes.push_back({kPasses[i], {{planner::Term::Multiply, Cycles(passes[i]), Bytes()}}});
    cost.cycles += Cycles(passes[i]);
  }
  return cost;
}

TEST(VerdictLine, ComparesTheFirstPassAndTheWholeStepWithDense) {
  EXPECT_EQ(
      verdict_line({"sparse", cost_of({50'624, 49'376}), cost_of({90'800, 69'200}), 0.22}),
      "verdict    sparse Fwd 50,624 cycles, 1.8x faster than dense (90,800); whole step 1.6x; "
      "pays up to density 0.22 (modelled)\n");
}

TEST(VerdictLine, HasNoWholeStepForOnePassAndNoDensityThatNobodyKnows) {
  EXPECT_EQ(verdict_line({"4x4 blocks", cost_of({500}), cost_of({1000}), {}}),
            "verdict    4x4 blocks Fwd 500 cycles, 2.0x faster than dense (1,000) (modelled)\n");
}

TEST(VerdictLine, BeginsWithDenseWhereDenseCostsLess) {
  EXPECT_EQ(verdict_line({"1x1 blocks", cost_of({3000, 10}), cost_of({1000, 20}), {}}),
            "verdict    dense wins: 1x1 blocks Fwd 3,000 cycles, 3.0x as many as dense (1,000); "
            "whole step 3.0x as many (modelled)\n");
}

TEST(DenseBaseline, IsTheDensePlanUnderTheMemoryLimitOfTheOptions) {
  const Problem problem{.size = {1, 256, 256, 64}, .density = 0.1};
  auto machine = device::machine_preset("gc200");
  const auto plan = dense_baseline(problem, machine, {});
  ASSERT_TRUE(plan);
  EXPECT_EQ(*plan, planner::plan_dense_or_throw(problem, machine));
  machine.tiles = 1;
  EXPECT_FALSE(dense_baseline({.size = {1, 4096, 4096, 64}}, machine, {}));
}

}  // namespace
}  // namespace tessera::tools
