#include "tessera/report/dense_verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tessera::report {
namespace {

using testing::HasSubstr, testing::Not;

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

DenseComparison compare(const std::string& name, const std::vector<std::int64_t>& sparse,
                        const std::vector<std::int64_t>& dense) {
  return compare_cycles(name, sparse_of(sparse), dense_of(dense));
}

DenseComparison with_density(DenseComparison c, double density, double pays_up_to) {
  c.density = density;
  c.outlook.pays_up_to = pays_up_to;
  return c;
}

TEST(DenseVerdict, ComparesTheFirstPassAndTheWholeStepWithDense) {
  EXPECT_EQ(verdict_text(with_density(compare("", {50'624, 49'376}, {90'800, 69'200}), 0.1, 0.22)),
            "Fwd 50,624 cycles, 1.8x faster than dense (90,800, half sums); whole step 1.6x; pays "
            "up to density "
            "0.22 (modelled)");
}

TEST(DenseVerdict, NamesTheSumsOfTheDenseSide) {
  planner::DensePlanResult dense = dense_of({1000});
  dense.plan->partials_type = DataType::Float;
  EXPECT_THAT(verdict_text(compare_cycles("", sparse_of({500}), dense)),
              HasSubstr("faster than dense (1,000, float sums)"));
  const SparseAlternative none{std::nullopt, "no plan"};
  EXPECT_THAT(verdict_text(compare_dense_run(sparse_of({500}), DataType::Float, none)),
              HasSubstr("R dense, float sums, Fwd 500 cycles"));
}

TEST(DenseVerdict, HasNoWholeStepForOnePassAndNoDensityThatNobodyKnows) {
  EXPECT_EQ(verdict_text(compare("4x4 blocks", {500}, {1000})),
            "4x4 blocks Fwd 500 cycles, 2.0x faster than dense (1,000, half sums) (modelled)");
}

TEST(DenseVerdict, HasNoWholeStepIfPassesAreMissing) {
  EXPECT_EQ(verdict_text(compare("", {500, 100}, {1000, 200, 300})),
            "Fwd 500 cycles, 2.0x faster than dense (1,000, half sums) (modelled)");
}

TEST(DenseVerdict, BeginsWithDenseWhereDenseCostsLess) {
  EXPECT_EQ(verdict_text(compare("1x1 blocks", {3000, 10}, {1000, 20})),
            "dense wins: 1x1 blocks Fwd 3,000 cycles, 3.0x as many as dense (1,000, half sums); "
            "whole step "
            "3.0x as many (modelled)");
  EXPECT_EQ(verdict_text(compare("", {500, 2500}, {1000, 500})),
            "dense wins: Fwd 500 cycles, 2.0x faster than dense (1,000, half sums); whole step "
            "2.0x as many "
            "(modelled)");
}

TEST(DenseVerdict, SaysWhichIsFasterIfOnlyTheWholeStepPays) {
  EXPECT_EQ(verdict_text(compare("", {2000, 500}, {1000, 4000})),
            "Fwd 2,000 cycles, 2.0x as many as dense (1,000, half sums); whole step 2.0x faster "
            "(modelled)");
}

TEST(DenseVerdict, GivesTheReasonIfNoDensePlanFits) {
  const DenseComparison c = compare_cycles(
      "", sparse_of({500, 20}), planner::DensePlanResult{std::nullopt, "no dense plan for Fwd"});
  EXPECT_EQ(verdict_text(c), "only sparse fits: Fwd 500 cycles; no dense plan for Fwd (modelled)");
  EXPECT_TRUE(c.sparse_wins());
  EXPECT_FALSE(c.is_whole_step);
}

SparseAlternative alternative_of(const std::vector<std::int64_t>& passes) {
  planner::Plan plan;
  plan.block = {16, 16};
  plan.cost = dense_of(passes).plan->cost;
  return {plan, ""};
}

TEST(DenseVerdict, NamesALayerThatRunsDenseBeforeItsSparseAlternative) {
  EXPECT_EQ(verdict_text(with_density(compare_dense_run(sparse_of({500, 500}), DataType::Half,
                                                        alternative_of({1000, 600})),
                                      0.3, 0.2)),
            "R dense, half sums, Fwd 500 cycles, 2.0x faster than 16x16 blocks (1,000); whole step "
            "1.6x; sparse "
            "pays up to density 0.2 (modelled)");
  const DenseComparison loses =
      compare_dense_run(sparse_of({500}), DataType::Half, alternative_of({250}));
  EXPECT_EQ(
      verdict_text(loses),
      "sparse would win: R dense, half sums, Fwd 500 cycles, 2.0x as many as 16x16 blocks (250) "
      "(modelled)");
  const auto json = nlohmann::json::parse(to_json(loses));
  EXPECT_EQ(json["runs_dense"], true);
  EXPECT_EQ(json["sparse_wins"], true);
  EXPECT_EQ(json["dense_cycles"], 500);
  EXPECT_EQ(json["sparse_cycles"], 250);
}

TEST(DenseVerdict, GivesTheReasonIfNoSparsePlanFits) {
  const DenseComparison c =
      compare_dense_run(sparse_of({500}), DataType::Half, {std::nullopt, "no plan"});
  EXPECT_EQ(verdict_text(c),
            "only dense fits: R dense, half sums, Fwd 500 cycles; no plan (modelled)");
  const auto json = nlohmann::json::parse(to_json(c));
  EXPECT_EQ(json["no_sparse_plan"], "no plan");
  EXPECT_TRUE(json["sparse_cycles"].is_null());
  EXPECT_TRUE(json["passes"][0]["dense_over_sparse"].is_null());
  EXPECT_FALSE(c.sparse_wins());
}

TEST(DenseBaseline, IsTheDensePlanUnderTheMemoryLimitOfTheOptions) {
  const Problem problem{.size = {1, 256, 256, 64}, .density = 0.1};
  auto machine = device::machine_preset("gc200");
  const auto plan = dense_baseline(problem, machine, {}).plan;
  ASSERT_TRUE(plan);
  EXPECT_EQ(*plan, planner::plan_dense_or_throw(problem, machine));
  machine.tiles = 1;
  const auto none = dense_baseline({.size = {1, 4096, 4096, 64}}, machine, {});
  EXPECT_FALSE(none.plan);
  EXPECT_THAT(none.reason, HasSubstr("no dense plan for Fwd: a tile needs "));
}

// Published products on a Bow compare sparse ones with float sums with dense ones with half sums.
TEST(DenseBaseline, HasTheFastestSumsWhateverThoseOfTheLayer) {
  const auto machine = device::machine_preset("gc200");
  Problem problem{.size = {1, 512, 512, 64}, .block = {16, 16}, .data_type = DataType::Half};
  for (const DataType sums : {DataType::Half, DataType::Float}) {
    problem.partials_type = sums;
    const auto plan = dense_baseline(problem, machine, {}).plan;
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->partials_type, DataType::Half);
    EXPECT_LE(plan->cost.cycles,
              planner::plan_dense_or_throw(problem, machine, {.partials_type = sums}).cost.cycles);
  }
}

TEST(SparseAlternative, IsThePlanWithBucketsOrTheReasonWhyThereIsNone) {
  const Problem problem{.size = {1, 64, 64, 16}, .density = 0.9, .data_type = DataType::Half};
  auto machine = device::machine_preset("gc200");
  planner::Options options;
  options.constraints.use_dense = true;
  const auto found = sparse_alternative(problem, machine, options, nullptr);
  ASSERT_TRUE(found.plan);
  EXPECT_FALSE(found.plan->use_dense);
  machine.tile_memory = Bytes(4096);
  machine.tiles = 1;
  const auto none = sparse_alternative(problem, machine, options, nullptr);
  EXPECT_FALSE(none.plan);
  EXPECT_THAT(none.reason, HasSubstr("no plan for "));
}

TEST(DenseVerdict, NamesRandomPatternsWhereTheOwnOneDiffersFromThem) {
  const DenseComparison wins = compare("", {500}, {1000}), loses = compare("", {1000}, {500});
  EXPECT_THAT(verdict_text(with_density(wins, 0.1, 0.2)), HasSubstr("; pays up to density 0.2 ("));
  EXPECT_THAT(verdict_text(with_density(wins, 0.3, 0.2)),
              HasSubstr("; random patterns pay up to density 0.2 ("));
  EXPECT_THAT(verdict_text(with_density(loses, 0.3, 0.2)), HasSubstr("; pays up to density 0.2 ("));
  EXPECT_THAT(verdict_text(with_density(loses, 0.1, 0.2)),
              HasSubstr("; random patterns pay up to density 0.2 ("));
  EXPECT_THAT(verdict_text(with_density(loses, 0.1, 0)),
              HasSubstr("; random patterns pay at no density ("));
}

TEST(DenseVerdict, NamesWhatWouldWinIfDenseDoes) {
  DenseComparison c = compare("", {1000}, {500});
  c.outlook.is_searched = true;
  EXPECT_THAT(verdict_text(c), HasSubstr("that was tried wins: store it dense (modelled)"));
  c.outlook.remedies = {{"4x4 blocks", 1.25}, {"batch 64", 1.1}};
  EXPECT_THAT(verdict_text(c),
              HasSubstr("; would win: 4x4 blocks (1.25x); or batch 64 (1.10x) (mod"));
  EXPECT_EQ(nlohmann::json::parse(to_json(c))["would_win"][0]["change"], "4x4 blocks");
  c.passes[0].sparse = 400;
  EXPECT_THAT(verdict_text(c), Not(HasSubstr("would win")));
}

TEST(DenseVerdict, IsAboutEqualWithinTheErrorAndKeepsDense) {
  DenseComparison c = compare("", {970}, {1000});
  EXPECT_EQ(c.better(), Better::Neither);
  EXPECT_FALSE(c.sparse_wins());
  EXPECT_THAT(verdict_text(c), testing::StartsWith("about equal, keep R dense: Fwd 970 cycles"));
  EXPECT_EQ(nlohmann::json::parse(to_json(c))["better"], "about equal");
  c.error = 0.01;
  EXPECT_TRUE(c.sparse_wins());
}

TEST(DenseVerdict, SaysWhatIsForecastInPartsOfItsOwn) {
  DenseComparison c = with_density(compare("", {500}, {1000}), 0.1, 0.2);
  c.how = "measured, +-1 %";
  c.outlook.how = "forecast";
  EXPECT_EQ(
      verdict_text(c),
      "Fwd 500 cycles, 2.0x faster than dense (1,000, half sums) (measured, +-1 %); forecast: "
      "pays up to density 0.2");
}

TEST(DenseVerdict, IsNoneWhereTheTimesDifferTooMuch) {
  DenseComparison c = compare("", {500}, {1000});
  c.how = "measured, +-34 %";
  c.disturbed = 0.4;
  EXPECT_EQ(verdict_text(c),
            "none: the times differ by too much from run to run (measured, +-34 %); other programs "
            "used 40 % of these cores; run again");
  const auto json = nlohmann::json::parse(to_json(c));
  EXPECT_TRUE(json["better"].is_null());
  EXPECT_EQ(json["sparse_wins"], false);
}

TEST(DenseVerdict, ShowsTimesInMilliseconds) {
  DenseComparison c{.sparse_name = "",
                    .passes = {{Pass::Fwd, 2e-3, 1e-3}},
                    .is_whole_step = true,
                    .no_dense = "",
                    .dense_name = "oneDNN, float",
                    .unit = CostUnit::Seconds,
                    .how = "measured",
                    .outlook = {}};
  EXPECT_EQ(verdict_text(c),
            "dense wins: Fwd 2.0000 ms, 2.0x as long as dense (1.0000, oneDNN, float) (measured)");
  const auto json = nlohmann::json::parse(to_json(c));
  EXPECT_EQ(json["dense_seconds"], 1e-3);
  EXPECT_EQ(json["passes"][0]["sparse_seconds"], 2e-3);
}

TEST(DenseVerdict, TakesThePassesOfAPlan) {
  const auto cycles = pass_cycles(dense_of({5, 7}).plan->cost);
  ASSERT_EQ(cycles.size(), 2u);
  EXPECT_EQ(cycles[1].pass, Pass::GradA);
  EXPECT_EQ(cycles[1].cycles, Cycles(7));
}

}  // namespace
}  // namespace tessera::report
