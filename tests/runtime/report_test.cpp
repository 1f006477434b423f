#include "tessera/runtime/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/tests/runtime/layer_case.hpp"

namespace tessera::runtime {
namespace {

using testing::HasSubstr;
using testing::Not;

device::Machine machine_of(std::int64_t tiles) {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = tiles;
  return machine;
}

TEST(DenseBound, IsAllUnitsBusyAllTheTime) {
  planner::Problem problem{.size = {1, 64, 64, 32}};
  // 8 units of 4 half products with float sums: 32 a tile and cycle.
  EXPECT_EQ(dense_bound(problem, machine_of(2)), Cycles(64 * 64 * 32 / (2 * 32)));
  problem.data_type = DataType::Float;  // 8 units of 2
  EXPECT_EQ(dense_bound(problem, machine_of(2)), Cycles(64 * 64 * 32 / (2 * 16)));
}

TEST(DenseBound, IsNoneWithoutUnits) {
  device::Machine machine = machine_of(2);
  machine.half_float_conv_units = 0;
  EXPECT_FALSE(dense_bound({.size = {1, 4, 4, 4}}, machine));
}

LayerReport small_report() {
  LayerReport report{.source = "a test",
                     .problem = {.size = {1, 8, 12, 4}, .density = 0.25},
                     .machine = machine_of(4)};
  report.plan = planner::plan_or_throw(report.problem, report.machine);
  report.spill = {.blocks = 24, .moved_blocks = 6, .records = 5};
  PassReport pass{planner::Pass::Fwd, {}, Verdict{.compared = 32, .worst = 0.5}};
  pass.ledger.steps = {{"pre-arrange", device::StepKind::Exchange, Cycles(1234), Cycles(600),
                        TileId(0), Cycles(1234), Bytes(2048)},
                       {"distribute", device::StepKind::Compute, Cycles(2000000), Cycles(11),
                        TileId(1), Cycles(8000000), Bytes()}};
  report.passes = {pass};
  return report;
}

TEST(Report, ShowsCyclesOfEachPhaseAndTheirSum) {
  const std::string text = to_text(small_report());
  EXPECT_THAT(text, HasSubstr("pre-arrange       1           0       1,234       1,234"));
  EXPECT_THAT(text, HasSubstr("distribute        1   2,000,000           0   2,000,000"));
  EXPECT_THAT(text, HasSubstr("sync, launch                                        611"));
  EXPECT_THAT(text, HasSubstr("total             2                           2,001,845"));
  EXPECT_THAT(text, HasSubstr("2.0 KiB"));
  EXPECT_THAT(text, HasSubstr("spilled   6 of 24 (25.00 %)"));
}

TEST(Report, EveryCycleOfThePlanStandsInSomeRow) {
  const LayerReport report = small_report();
  const planner::PassCost* planned = report.plan.cost.find(planner::Pass::Fwd);
  ASSERT_NE(planned, nullptr);
  const std::string text = to_text(report);
  for (const planner::CostTerm& term : planned->terms) {
    const bool of_no_phase_above = term.name.find("sums") != std::string::npos;
    if (term.cycles == Cycles() || of_no_phase_above) continue;
    EXPECT_THAT(text, HasSubstr(" " + std::to_string(term.cycles.value) + " ")) << term.name;
  }
}

TEST(Report, SaysPassOrFailAsTheVerdictsDo) {
  LayerReport report = small_report();
  EXPECT_TRUE(report.ok());
  EXPECT_THAT(to_text(report), HasSubstr("PASS: 2,001,845 modelled cycles, 1510.8 us"));
  report.passes[0].verdict->wrong = 1;
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(to_text(report), HasSubstr("FAIL: "));
  EXPECT_THAT(to_text(report), Not(HasSubstr("PASS")));
  report.passes[0].verdict.reset();
  EXPECT_TRUE(report.ok());
  EXPECT_THAT(to_text(report), HasSubstr("not checked"));
}

TEST(Report, UsefulRateIsTwoFlopsAValueAndColumn) {
  LayerReport report = small_report();
  report.passes[0].ledger.steps.resize(1);
  report.passes[0].ledger.steps[0].cycles = Cycles(725);  // with the barrier 1325: one microsecond
  // 24 values * 4 columns * 2 = 192 flops in a microsecond.
  EXPECT_THAT(to_text(report), HasSubstr("1.0 us, 0.2 useful GFLOP/s"));
}

}  // namespace
}  // namespace tessera::runtime
