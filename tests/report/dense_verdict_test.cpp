#include "tessera/report/dense_verdict.hpp"

#include <gtest/gtest.h>

namespace tessera::report {
namespace {

constexpr Pass kPasses[] = {Pass::Fwd, Pass::GradA, Pass::GradW};

std::vector<PassCycles> sparse_of(const std::vector<std::int64_t>& passes) {
  std::vector<PassCycles> sparse;
  for (std::size_t i = 0; i < passes.size(); ++i) sparse.push_back({kPasses[i], Cycles(passes[i])});
  return sparse;
}

planner::DensePlanResult dense_of(const std::vector<std::int64_t>& passes) {
  planner::DensePlan plan;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    plan.cost.passes.push_back(
        {kPasses[i], {{planner::Term::Multiply, Cycles(passes[i]), Bytes()}}});
    plan.cost.cycles += Cycles(passes[i]);
  }
  return {plan, ""};
}

TEST(DenseVerdict, ComparesTheFirstPassAndTheWholeStepWithDense) {
  EXPECT_EQ(
      verdict_text({"", sparse_of({50'624, 49'376}), dense_of({90'800, 69'200}), 0.22}),
      "Fwd 50,624 cycles, 1.8x faster than dense (90,800); whole step 1.6x; pays up to density "
      "0.22 (modelled)");
}

TEST(DenseVerdict, HasNoWholeStepForOnePassAndNoDensityThatNobodyKnows) {
  EXPECT_EQ(verdict_text({"4x4 blocks", sparse_of({500}), dense_of({1000})}),
            "4x4 blocks Fwd 500 cycles, 2.0x faster than dense (1,000) (modelled)");
}

TEST(DenseVerdict, HasNoWholeStepIfPassesAreMissing) {
  EXPECT_EQ(verdict_text({"", sparse_of({500, 100}), dense_of({1000, 200, 300})}),
            "Fwd 500 cycles, 2.0x faster than dense (1,000) (modelled)");
}

TEST(DenseVerdict, BeginsWithDenseWhereDenseCostsLess) {
  EXPECT_EQ(verdict_text({"1x1 blocks", sparse_of({3000, 10}), dense_of({1000, 20})}),
            "dense wins: 1x1 blocks Fwd 3,000 cycles, 3.0x as many as dense (1,000); whole step "
            "3.0x as many (modelled)");
  EXPECT_EQ(verdict_text({"", sparse_of({500, 2500}), dense_of({1000, 500})}),
            "dense wins: Fwd 500 cycles, 2.0x faster than dense (1,000); whole step 2.0x as many "
            "(modelled)");
}

TEST(DenseVerdict, SaysWhichIsFasterIfOnlyTheWholeStepPays) {
  EXPECT_EQ(verdict_text({"", sparse_of({2000, 500}), dense_of({1000, 4000})}),
            "Fwd 2,000 cycles, 2.0x as many as dense (1,000); whole step 2.0x faster (modelled)");
}

TEST(DenseVerdict, GivesTheReasonIfNoDensePlanFits) {
  const DenseComparison c{"", sparse_of({500, 20}), {std::nullopt, "no dense plan for Fwd"}};
  EXPECT_EQ(verdict_text(c), "only sparse fits: Fwd 500 cycles; no dense plan for Fwd (modelled)");
  EXPECT_TRUE(c.sparse_wins());
  EXPECT_FALSE(c.is_whole_step());
}

TEST(DenseVerdict, TakesThePassesOfAPlan) {
  const auto cycles = pass_cycles(dense_of({5, 7}).plan->cost);
  ASSERT_EQ(cycles.size(), 2u);
  EXPECT_EQ(cycles[1].pass, Pass::GradA);
  EXPECT_EQ(cycles[1].cycles, Cycles(7));
}

}  // namespace
}  // namespace tessera::report
