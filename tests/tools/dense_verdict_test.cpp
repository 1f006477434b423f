#include "tessera/tools/dense_verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::tools {
namespace {

TEST(DenseBaseline, IsTheDensePlanUnderTheMemoryLimitOfTheOptions) {
  const Problem problem{.size = {1, 256, 256, 64}, .density = 0.1};
  auto machine = device::machine_preset("gc200");
  const auto plan = dense_baseline(problem, machine, {}).plan;
  ASSERT_TRUE(plan);
  EXPECT_EQ(*plan, planner::plan_dense_or_throw(problem, machine));
  machine.tiles = 1;
  const auto none = dense_baseline({.size = {1, 4096, 4096, 64}}, machine, {});
  EXPECT_FALSE(none.plan);
  EXPECT_THAT(none.reason, testing::HasSubstr("no dense plan for Fwd: a tile needs "));
}

TEST(VerdictLine, HasTheWordsOfReports) {
  const report::DenseComparison none =
      report::compare_cycles("", {{Pass::Fwd, Cycles(7)}}, {std::nullopt, "too large"});
  EXPECT_EQ(verdict_line(none), "verdict    " + report::verdict_text(none) + "\n");
}

}  // namespace
}  // namespace tessera::tools
