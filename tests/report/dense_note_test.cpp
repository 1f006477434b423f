#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/report/dense_verdict.hpp"

namespace tessera::report {
namespace {

TEST(DenseNote, NamesTheDensePlanAndHowToKeepRSparse) {
  planner::Plan plan;
  planner::Options open, dense;
  dense.constraints.use_dense = true;
  EXPECT_EQ(dense_note(plan, open), "");
  plan.use_dense = true;
  plan.block = {16, 16};
  EXPECT_EQ(dense_note(plan, dense), "R dense in 16x16 blocks");
  EXPECT_EQ(dense_note(plan, open),
            "R dense in 16x16 blocks: planConstraints.useDense false keeps R sparse");
  plan.dense.emplace();
  EXPECT_EQ(dense_note(plan, dense), "R dense, without buckets");
  EXPECT_EQ(dense_note(plan, open),
            "R dense, without buckets, because no plan with buckets that fits costs fewer cycles: "
            "planConstraints.useDense false keeps R sparse");
}

TEST(VerdictLine, HasTheWordsOfReports) {
  const DenseComparison none = compare_cycles("", {{Pass::Fwd, Cycles(7)}},
                                              planner::DensePlanResult{std::nullopt, "too large"});
  EXPECT_EQ(verdict_line(none), "verdict    " + verdict_text(none) + "\n");
}

}  // namespace
}  // namespace tessera::report
