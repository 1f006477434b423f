#include "tessera/report/report.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tessera/base/pass.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/report/report_json.hpp"
#include "tessera/tests/runtime/layer_case.hpp"

namespace tessera::report {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

device::Machine machine_of(std::int64_t tiles) {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = tiles;
  return machine;
}

LayerReport small_report() {
  LayerReport report{.source = "a test",
                     .problem = {.size = {1, 8, 12, 4}, .density = 0.25},
                     .machine = machine_of(4)};
  planner::Options options;
  options.operand_placement = Placement::AtHome;  // the ledger below has no steps that arrange
  report.plan = planner::plan_or_throw(report.problem, report.machine, options);
  report.spill = {.blocks = 24, .moved_blocks = 6, .records = 5};
  PassReport pass{Pass::Fwd, {}, verify::Verdict{.compared = 32, .worst = 0.5}};
  pass.ledger.steps = {{Phase::PreArrange, device::StepKind::Exchange, Cycles(1234), Cycles(600),
                        TileId(0), Cycles(1234), Bytes(2048), 4},
                       {Phase::Distribute, device::StepKind::Compute, Cycles(2000000), Cycles(11),
                        TileId(3), Cycles(4000000), Bytes(), 4}};
  report.passes = {pass};
  return report;
}

TEST(Report, ShowsCyclesOfEachPhaseAndTheirSum) {
  const std::string text = to_text(small_report());
  EXPECT_THAT(text, HasSubstr("exchange operands          1           0       1,234       1,234"));
  EXPECT_THAT(text, HasSubstr("multiply                   1   2,000,000           0   2,000,000"));
  EXPECT_THAT(text, HasSubstr("barriers and launches                                        611"));
  EXPECT_THAT(text, HasSubstr("total                      2                           2,001,845"));
  EXPECT_THAT(text, HasSubstr("2.0 KiB"));
  EXPECT_THAT(text, HasSubstr("spilled   6 of 24 (25.00 %)"));
}

TEST(Report, NamesTheSlowestTileOfTheLongestStepOfEachPass) {
  LayerReport report = small_report();
  EXPECT_THAT(to_text(report),
              HasSubstr("Fwd     2 multiply                 2,000,000             3            2.00"
                        "                  2.00\n"));
  report.passes.push_back({Pass::GradA, {}, {}});
  EXPECT_THAT(to_text(report), Not(HasSubstr("GradA   0"))) << "no step, no line";
}

TEST(Report, CountsOneRecordAsOne) {
  LayerReport report = small_report();
  EXPECT_THAT(to_text(report), HasSubstr("buckets   5 records; "));
  report.spill.records = 1;
  EXPECT_THAT(to_text(report), HasSubstr("buckets   1 record; "));
}

// The longest line, in columns.
std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) most = std::max(most, line.size());
  return most;
}

TEST(Report, SaysHowManyStepsTheSpilledTakeAndHowManyAreNeeded) {
  LayerReport report = small_report();
  EXPECT_THAT(to_text(report), Not(HasSubstr("steps,"))) << "nothing travels";
  report.travel.y_end = {2, 0, 3};
  report.spill.steps = 4;
  report.spill.greedy_steps = 7;
  report.spill.lower_bound_steps = 3;
  EXPECT_THAT(to_text(report),
              HasSubstr("6 of 24 (25.00 %); travel up to 2 along x, 2 along y;\n"
                        "          4 steps, at least 3 needed, 7 by PopSparse's order\n"));
  report.spill.lower_bound_steps = 4;
  EXPECT_THAT(to_text(report), HasSubstr("4 steps, the fewest"));
  report.spill.lower_bound_steps = report.spill.greedy_steps = 0;  // forced: nothing was searched
  EXPECT_THAT(to_text(report), HasSubstr("along y; 4 steps\n"));
}

TEST(Report, StatesTheBytesOfAPattern) {
  LayerReport report = small_report();
  report.pattern_bytes = Bytes(6144);
  EXPECT_THAT(to_text(report), HasSubstr("pattern   6.0 KiB to send if it changes\n"));
  const auto buckets = nlohmann::json::parse(to_json(report, {})).at("buckets");
  EXPECT_EQ(buckets.at("pattern_bytes"), 6144);
}

TEST(Report, SaysWhenRIsDenseOrInOtherBlocks) {
  LayerReport report = small_report();
  EXPECT_THAT(to_text(report), Not(HasSubstr("R dense")));
  report.plan.block = {16, 16};
  EXPECT_THAT(to_text(report), HasSubstr("; as 16x16 blocks\n"));
  report.plan.use_dense = true;
  EXPECT_THAT(to_text(report), HasSubstr("; R dense in 16x16 blocks\n"));
}

TEST(Report, NamesGroupsOnlyWhereThereAreSome) {
  LayerReport report = small_report();
  EXPECT_THAT(to_text(report), HasSubstr("layer     x 8 outputs"));
  report.problem.size.g = report.plan.partition.g = 3;
  EXPECT_THAT(to_text(report), HasSubstr("layer     g 3 groups, x 8 outputs"));
  EXPECT_THAT(to_text(report), HasSubstr("plan      g 3 * x "));
  EXPECT_THAT(to_text(report), HasSubstr("elements of 288 "));
}

TEST(Report, KeepsWithinAHundredColumns) {
  LayerReport report = small_report();
  report.machine = machine_of(1472);
  report.problem.size = {12, 123456, 234567, 16};
  report.problem.block = {16, 16};
  report.problem.grad_a = report.problem.grad_w = true;
  report.plan.partition = {12, 123, 1472, 123};
  report.plan.grad_w = planner::Method::BlockGradWAmp;
  report.plan.grad_a = planner::Method::ElementTranspose;
  report.plan.nonzeros_per_bucket = 12345678;
  report.plan.fwd_meta_words = report.plan.grad_a_meta_words = Words(1234567);
  report.plan.use_dense = true;
  report.travel.y_end = {123, 1472};
  report.spill = {.blocks = 123456789, .moved_blocks = 12345678, .records = 1234567};
  report.spill.steps = report.spill.greedy_steps = 12345;
  const std::string text = to_text(report);
  EXPECT_LE(widest(text), 100u) << text;
}

TEST(Report, EveryCycleOfThePlanStandsInSomeRow) {
  const LayerReport report = small_report();
  const planner::PassCost* planned = report.plan.cost.find(Pass::Fwd);
  ASSERT_NE(planned, nullptr);
  const std::string text = to_text(report);
  for (const planner::CostTerm& term : planned->terms) {
    const Phase phase = planner::phase_of(term.name, Pass::Fwd, false);
    const bool of_no_phase_above = phase == Phase::Reduce || phase == Phase::Control;
    if (term.cycles == Cycles() || of_no_phase_above) continue;
    EXPECT_THAT(text, HasSubstr(" " + std::to_string(term.cycles.value) + " "))
        << to_string(term.name);
  }
}

// Whatever a plan expects of a pass is in the column of exactly one phase.
TEST(PlannedCycles, OfAllPhasesAreThePlansCycles) {
  for (const std::int64_t side : {1, 4, 16}) {
    LayerReport report = small_report();
    report.problem = {.size = {1, 64, 96, 32}, .block = {side, side}, .density = 0.2};
    report.problem.grad_a = report.problem.grad_w = true;
    report.machine = machine_of(16);
    report.plan = planner::plan_or_throw(report.problem, report.machine, planner::sparse_options());
    for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW}) {
      Cycles sum;
      for (int phase = 0; phase <= static_cast<int>(Phase::Overhead); ++phase)
        sum += planned_cycles(report, pass, static_cast<Phase>(phase));
      EXPECT_EQ(sum, report.plan.cost.find(pass)->cycles()) << to_string(pass);
      EXPECT_GT(planned_cycles(report, pass, Phase::Distribute), Cycles());
      EXPECT_GT(planned_cycles(report, pass, Phase::Overhead), Cycles());
    }
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

TEST(Report, EndsInWhetherSparsePays) {
  LayerReport report = small_report();
  EXPECT_FALSE(dense_comparison(report));
  EXPECT_THAT(to_text(report), Not(HasSubstr("verdict")));
  report.dense = planner::plan_dense(report.problem, report.machine);
  const Cycles dense = report.dense.plan->cost.cycles;
  ASSERT_LT(dense, Cycles(2'001'845));
  EXPECT_THAT(
      to_text(report),
      EndsWith("useful GFLOP/s\nverdict   dense wins: Fwd 2,001,845 cycles, " +
               fmt::format("{:.1f}x as many as dense ({}, {})", 2'001'845.0 / double(dense.value),
                           dense.value, sums_name(report.dense.plan->partials_type)) +
               " (modelled)\n"));
  report.dense = planner::DensePlanResult{std::nullopt, "no dense plan for Fwd: too large"};
  EXPECT_THAT(to_text(report), EndsWith("verdict   only sparse fits: Fwd 2,001,845 cycles; no "
                                        "dense plan for Fwd: too large (modelled)\n"));
}

TEST(Report, ComparesThePlanIfNoPassRan) {
  LayerReport report = small_report();
  report.passes.clear();
  report.dense = planner::plan_dense(report.problem, report.machine);
  ASSERT_TRUE(dense_comparison(report));
  EXPECT_EQ(dense_comparison(report)->sparse_cost(), double(report.plan.cost.cycles.value));
  EXPECT_THAT(to_text(report), HasSubstr("\nverdict   "));
}

TEST(Report, NamesADenseRInTheVerdict) {
  LayerReport report = small_report();
  report.plan.use_dense = true;
  report.plan.block = {16, 16};
  report.dense.reason = "too large";
  EXPECT_THAT(to_text(report), HasSubstr("R dense in 16x16 blocks Fwd "));
}

TEST(Report, ShowsThePartsOfEveryPassOfAPlanWithoutBuckets) {
  LayerReport report = small_report();
  report.problem.grad_a = report.problem.grad_w = true;
  planner::Options options;
  options.constraints.use_dense = true;
  report.plan = planner::plan_or_throw(report.problem, report.machine, options);
  ASSERT_TRUE(report.plan.dense);
  EXPECT_FALSE(dense_comparison(report));
  report.sparse = sparse_alternative(report.problem, report.machine, options, nullptr);
  ASSERT_TRUE(dense_comparison(report));
  EXPECT_TRUE(dense_comparison(report)->runs_dense);
  const std::string text = to_text(report);
  EXPECT_THAT(text, HasSubstr("\nplan      Fwd in "));
  EXPECT_THAT(text, HasSubstr("; R dense, without buckets\n          GradA in "));
  EXPECT_THAT(text, HasSubstr("\n          GradW in "));
  EXPECT_THAT(text,
              HasSubstr("R dense, " + sums_name(report.plan.dense->partials_type) + ", Fwd "));
  EXPECT_THAT(text, HasSubstr("\npattern   "));
  EXPECT_THAT(text, Not(HasSubstr("\nbuckets   ")));
  const auto planned = nlohmann::json::parse(to_json(report, {.options = options})).at("planned");
  EXPECT_EQ(planned.at("plan").at("dense").at("passes").size(), 3u);
}

TEST(ReportJson, HasTheCyclesOfBothSidesOfTheVerdict) {
  LayerReport report = small_report();
  const auto verdict = [&] { return nlohmann::json::parse(to_json(report, {})).at("verdict"); };
  EXPECT_TRUE(verdict().is_null());
  report.dense = planner::plan_dense(report.problem, report.machine);
  const std::int64_t dense = report.dense.plan->cost.cycles.value;
  const nlohmann::json expected = {{"pass", "Fwd"},
                                   {"sparse_cycles", 2'001'845},
                                   {"dense_cycles", dense},
                                   {"dense_over_sparse", double(dense) / 2'001'845}};
  EXPECT_EQ(verdict().at("passes"), nlohmann::json::array({expected}));
  EXPECT_EQ(verdict().at("dense_cycles"), dense);
  EXPECT_EQ(verdict().at("sparse_wins"), false);
  EXPECT_EQ(verdict().at("text"), verdict_text(*dense_comparison(report)));
  EXPECT_TRUE(verdict().at("no_dense_plan").is_null());
  report.dense = planner::DensePlanResult{std::nullopt, "too large"};
  EXPECT_EQ(verdict().at("no_dense_plan"), "too large");
  EXPECT_TRUE(verdict().at("dense_over_sparse").is_null());
}

TEST(Report, UsefulRateIsTwoFlopsAValueAndColumn) {
  LayerReport report = small_report();
  report.passes[0].ledger.steps.resize(1);
  report.passes[0].ledger.steps[0].cycles = Cycles(725);  // with the barrier 1325: one microsecond
  // 24 values * 4 columns * 2 = 192 flops in a microsecond.
  EXPECT_THAT(to_text(report), HasSubstr("1.0 us, 0.2 useful GFLOP/s"));
}

}  // namespace
}  // namespace tessera::report
