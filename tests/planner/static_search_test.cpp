#include "tessera/planner/internal/static_search.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/planner/internal/static_load.hpp"
#include "tessera/planner/static_explain.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/tests/planner/static_pattern.hpp"
#include "tessera/tests/support/message_of.hpp"

// The default planner of static products.
namespace tessera::planner {
namespace {

using testing::HasSubstr;

StaticPlan planned(const sparse::Csr<float>& m, std::int64_t batch,
                   const device::Machine& machine) {
  const auto result = plan_static(problem_of(m, batch), view_of(m), machine);
  EXPECT_TRUE(result.plan) << result.reason;
  return result.plan.value();
}

void expect_same_load(const internal::StaticLoad& a, const internal::StaticLoad& b) {
  EXPECT_EQ(a.tiles, b.tiles);
  EXPECT_EQ(a.row_begin, b.row_begin);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.depth, b.depth);
}

// The counts made while blocks are dealt are those that load_of() finds in the finished layout.
TEST(StaticLoad, CountsOfDealingAreThoseOfTheLayout) {
  Random random(21);
  for (int trial = 0; trial < 40; ++trial) {
    SCOPED_TRACE(trial);
    const auto m =
        random_matrix(random, 1 + random.below(30), 1 + random.below(30), 4, 0.05 + random.unit());
    if (m.blocks() == 0) continue;
    const auto counts = internal::count_blocks(view_of(m));
    const auto rows =
        internal::banded_rows(view_of(m), internal::bands_of(counts, 1 + random.below(5)));
    const std::int64_t tiles = std::ssize(rows.bands.blocks) + random.below(30);
    for (const auto& runs :
         {internal::even_runs(rows, tiles), internal::whole_row_runs(rows, tiles, {}),
          internal::whole_row_runs(rows, tiles, {.row_weight = 0.5}),
          internal::whole_row_runs(rows, tiles, {.cut_long = false})}) {
      StaticLayout layout;
      const auto load = internal::deal_runs(view_of(m), rows, runs, &layout.tile_of);
      layout.tiles = load.tiles;
      EXPECT_LE(std::ssize(load.tiles), tiles);
      expect_same_load(load, internal::load_of(layout, view_of(m)));
      expect_same_load(
          internal::transposed_load(load, layout.tile_of, internal::blocks_by_column(view_of(m))),
          internal::load_of_transpose(layout, view_of(m)));
    }
  }
}

TEST(StaticLoad, EvenRunsAreAsShortAsTheTilesAllow) {
  internal::BandedRows rows;
  rows.bands.blocks = {10, 5};
  EXPECT_EQ(internal::even_runs(rows, 4), (internal::StaticRuns{{5, 5}, {5}}));
  EXPECT_EQ(internal::even_runs(rows, 5), (internal::StaticRuns{{4, 4, 2}, {4, 1}}));
  EXPECT_TRUE(internal::even_runs(rows, 1).empty());
}

// One block less a run takes more tiles than there are.
TEST(StaticLoad, EvenRunsAreTheShortestOfRandomBands) {
  Random random(5);
  for (int i = 0; i < 200; ++i) {
    internal::BandedRows rows;
    for (std::int64_t band = 1 + random.below(4); band > 0; --band)
      rows.bands.blocks.push_back(1 + std::int64_t(random.below(40)));
    const auto tiles = std::int64_t(rows.bands.blocks.size() + random.below(60));
    std::int64_t used = 0, with_less = 0, longest = 0;
    const internal::StaticRuns runs = internal::even_runs(rows, tiles);
    ASSERT_EQ(runs.size(), rows.bands.blocks.size());
    for (std::size_t band = 0; band < runs.size(); ++band) {
      EXPECT_EQ(std::reduce(runs[band].begin(), runs[band].end()), rows.bands.blocks[band]);
      EXPECT_GT(std::ranges::min(runs[band]), 0);
      used += std::ssize(runs[band]);
      longest = std::max(longest, std::ranges::max(runs[band]));
    }
    EXPECT_LE(used, tiles);
    if (longest == 1) continue;
    for (const std::int64_t blocks : rows.bands.blocks) with_less += ceil_div(blocks, longest - 1);
    EXPECT_GT(with_less, tiles);
  }
}

TEST(StaticLoad, WholeRowRunsCutOnlyRowsThatAreLongerThanARun) {
  internal::BandedRows rows;
  rows.bands.blocks = {18};
  rows.block_rows = 5;
  rows.blocks = {3, 3, 8, 0, 4};
  // Three tiles: the rows of 3, the row of 8 and the row of 4.
  EXPECT_EQ(internal::whole_row_runs(rows, 3, {}), (internal::StaticRuns{{6, 8, 4}}));
  // Five tiles: no run is longer than 4, which takes two for the row of 8 unless it is not cut.
  EXPECT_EQ(internal::whole_row_runs(rows, 5, {}), (internal::StaticRuns{{3, 3, 4, 4, 4}}));
  EXPECT_EQ(internal::whole_row_runs(rows, 5, {.cut_long = false}),
            (internal::StaticRuns{{3, 3, 8, 4}}));
}

TEST(StaticPlanner, IsNeverWorseThanPopLibsCutAndItsCostIsCounted) {
  Random random(22);
  for (int trial = 0; trial < 30; ++trial) {
    SCOPED_TRACE(trial);
    const std::int64_t sides[] = {1, 4, 8, 16};
    const auto m = random_matrix(random, 1 + random.below(40), 1 + random.below(40),
                                 sides[random.below(4)], 0.02 + random.unit());
    if (m.blocks() == 0) continue;
    const std::int64_t batch = 1 + random.below(90);
    const auto machine = small_machine(1 + random.below(64));
    const StaticPlan plan = planned(m, batch, machine);
    const StaticPlan popsparse = plan_or_fail(m, batch, machine.tiles);
    const auto priced = [&](const StaticPlan& p) {
      return count_static_cost(p, problem_of(m, batch), view_of(m), machine);
    };
    EXPECT_EQ(plan.cost, priced(plan));
    EXPECT_LE(plan.cost.cycles, priced(popsparse).cycles);
    const std::int64_t tiles = std::ssize(plan.layouts.at(0).tiles) * std::ssize(plan.parts);
    EXPECT_LE(tiles, std::max<std::int64_t>(machine.tiles, 1));
  }
}

// Calls `visit(tile_of)` for every assignment of blocks to tiles; the numbers of tiles do not
// matter, so a block is on a tile that has blocks or on the next one.
template <class Visit>
void for_each_assignment(std::vector<std::int32_t>& tile_of, std::size_t placed, std::int32_t used,
                         std::int32_t tiles, const Visit& visit) {
  if (placed == tile_of.size()) {
    visit();
    return;
  }
  for (std::int32_t tile = 0; tile < std::min(used + 1, tiles); ++tile) {
    tile_of[placed] = tile;
    for_each_assignment(tile_of, placed + 1, std::max(used, tile + 1), tiles, visit);
  }
}

// Returns the cycles of the cheapest assignment of all blocks to 4 tiles.
std::int64_t least_cycles(const StaticPlan& plan, const sparse::Csr<float>& m, std::int64_t batch,
                          const device::Machine& machine) {
  StaticPlan trial = plan;
  std::vector<std::int32_t>& tile_of = trial.layouts.at(0).tile_of;
  trial.layouts[0].tiles.assign(std::size_t(machine.tiles), {});
  std::int64_t least = plan.cost.cycles.value;
  for_each_assignment(tile_of, 0, 0, std::int32_t(machine.tiles), [&] {
    const PlanCost cost = count_static_cost(trial, problem_of(m, batch), view_of(m), machine);
    least = std::min(least, cost.cycles.value);
  });
  return least;
}

// One vector of the batch, so that the batch is not cut and an assignment is all there is.
TEST(StaticPlanner, IsNearTheBestOfAllAssignmentsOfSmallPatterns) {
  constexpr double kLargestRatio = 1.05;
  Random random(23);
  int optimal = 0, patterns = 0;
  while (patterns < 25) {
    const auto m = random_matrix(random, 1 + random.below(4), 1 + random.below(4), 8, 0.5);
    if (m.blocks() == 0 || m.blocks() > 7) continue;
    ++patterns;
    const auto machine = small_machine(4);
    const StaticPlan plan = planned(m, 4, machine);
    const std::int64_t least = least_cycles(plan, m, 4, machine);
    optimal += plan.cost.cycles.value == least;
    EXPECT_LE(double(plan.cost.cycles.value), kLargestRatio * double(least)) << patterns;
  }
  EXPECT_GE(optimal, 23);
}

TEST(StaticPlanner, PlansAsPopLibsIfAsked) {
  Random random(24);
  const auto m = random_matrix(random, 20, 20, 4, 0.3);
  const auto machine = small_machine(32);
  const auto result = plan_static(problem_of(m, 64), view_of(m), machine, {.poplibs_parity = true});
  EXPECT_EQ(result.plan, plan_static_as_poplibs(problem_of(m, 64), view_of(m), machine).plan);
}

TEST(StaticPlanner, SaysWhatDoesNotFit) {
  Random random(25);
  const auto m = random_matrix(random, 16, 16, 16, 1.0);
  device::Machine machine = small_machine(4);
  machine.tile_memory = Bytes(4096);
  const auto result = plan_static(problem_of(m, 64), view_of(m), machine);
  EXPECT_FALSE(result.plan);
  EXPECT_THAT(result.reason, HasSubstr("a tile needs "));
  EXPECT_THAT(result.reason, HasSubstr("has 4096, of which temporary data may take 60 %"));
}

// 70,000 elements on one tile are more words than a kernel can count.
TEST(StaticPlanner, RefusesWordsPast16BitsByName) {
  Random random(26);
  const auto m = random_matrix(random, 280, 250, 1, 1.1);
  device::Machine machine = small_machine(1);
  machine.tile_memory = Bytes(1 << 24);
  const auto result = plan_static(problem_of(m, 4), view_of(m), machine);
  EXPECT_FALSE(result.plan);
  EXPECT_THAT(result.reason, HasSubstr("words have 16 bits, and a tile needs 70316 words"));
}

// Plans for other batches, with what the planner knows by then, beside plans made from scratch.
TEST(StaticPlanner, PlansLaterBatchesAboutAsWellAsTheFirst) {
  Random random(21);
  double product = 1, worst = 1;
  int plans = 0;
  for (const std::int64_t side : {1, 4, 8, 16})
    for (const double density : {0.05, 0.3}) {
      const auto m = random_matrix(random, 40, 50, side, density);
      StaticPlanner planner(view_of(m));
      for (const bool trains : {false, true})
        for (const std::int64_t batch : {4, 100, 32}) {
          Problem problem = problem_of(m, batch);
          problem.grad_a = problem.grad_w = trains;
          const auto machine = small_machine(60);
          const auto later = planner.plan(problem, machine).plan.value();
          const auto alone = plan_static(problem, view_of(m), machine).plan.value();
          EXPECT_EQ(later.cost, count_static_cost(later, problem, view_of(m), machine));
          if (batch == 4) {
            EXPECT_EQ(later, alone);
          }
          const double ratio = double(later.cost.cycles.value) / double(alone.cost.cycles.value);
          worst = std::max(worst, ratio);
          product *= ratio;
          ++plans;
        }
    }
  EXPECT_LE(std::pow(product, 1.0 / plans), 1.01);
  EXPECT_LE(worst, 1.06);
}

TEST(StaticPlanner, FindsAQuickCostNearThatOfItsPlans) {
  Random random(27);
  double product = 1;
  int patterns = 0;
  for (int trial = 0; trial < 24; ++trial) {
    SCOPED_TRACE(trial);
    const std::int64_t sides[] = {1, 4, 8, 16};
    const auto m = random_matrix(random, 8 + random.below(40), 8 + random.below(40),
                                 sides[trial % 4], 0.05 + 0.4 * random.unit());
    Problem problem = problem_of(m, 1 + random.below(90));
    problem.grad_a = problem.grad_w = trial % 3 == 0;
    const auto machine = small_machine(8 + random.below(56));
    const auto plan = plan_static(problem, view_of(m), machine).plan.value();
    StaticPlanner planner(view_of(m));
    const auto quick = planner.quick_cost(problem, machine);
    ASSERT_TRUE(quick.cost) << quick.reason;
    EXPECT_LE(quick.tiles, machine.tiles);
    const double ratio = double(quick.cost->cycles.value) / double(plan.cost.cycles.value);
    EXPECT_GE(ratio, 0.97) << "a plan is the cheapest of more cuts";
    EXPECT_LE(ratio, 1.15);
    EXPECT_GE(plan.cost.cycles, static_floor(problem, machine, m.blocks()));
    product *= ratio;
    ++patterns;
  }
  EXPECT_LE(std::pow(product, 1.0 / patterns), 1.02);
}

TEST(StaticPlanner, RefusesQuickCostsByName) {
  Random random(28);
  const auto m = random_matrix(random, 4, 4, 4, 0.5);
  StaticPlanner planner(view_of(m));
  const Problem problem = problem_of(m, 8);
  EXPECT_THAT(test::refusal(
                  [&] { planner.quick_cost(problem, small_machine(4), {.poplibs_parity = true}); }),
              HasSubstr("no quick cost"));
  EXPECT_THAT(test::refusal([&] { static_floor(problem, small_machine(4), -1); }),
              HasSubstr("-1 blocks"));
  device::Machine machine = small_machine(4);
  machine.tile_memory = Bytes(1024);
  EXPECT_THAT(planner.quick_cost(problem_of(m, 4096), machine).reason, HasSubstr("a tile needs "));
}

// The last part of the batch has fewer columns, and may add larger shares of its sums.
TEST(StaticPlanner, CountsTheCostOfUnequalParts) {
  Random random(29);
  for (const std::int64_t side : {1, 4})
    for (const std::int64_t parts : {2, 3, 5, 7}) {
      const auto m = random_matrix(random, 60, 60, side, 0.3);
      const Problem problem = problem_of(m, 100);
      const auto machine = small_machine(150);
      const auto plan = plan_static(problem, view_of(m), machine, {.z_parts = parts}).plan.value();
      EXPECT_EQ(plan.cost, count_static_cost(plan, problem, view_of(m), machine)) << parts;
    }
}

TEST(StaticSearch, KeepsThePinsOfTheOptions) {
  Random random(22);
  const auto m = random_matrix(random, 40, 50, 4, 0.3);
  const auto with = [&](std::optional<std::int64_t> parts, std::optional<std::int64_t> bands) {
    return plan_static(problem_of(m, 64), view_of(m), small_machine(64),
                       {.z_parts = parts, .bands = bands});
  };
  const auto both = with(4, 3);
  ASSERT_TRUE(both.plan) << both.reason;
  EXPECT_EQ(both.plan->parts.size(), 4u);
  EXPECT_EQ(both.plan->bands.size(), 4u);
  EXPECT_EQ(with(2, {}).plan.value().parts.size(), 2u);
  EXPECT_FALSE(with(64, {}).plan);
  EXPECT_THROW(with(0, {}), Error);
}

TEST(StaticSearch, TellsTheCutsThatCameNextAndTheBounds) {
  Random random(23);
  const auto m = random_matrix(random, 40, 50, 4, 0.3);
  const Problem problem = problem_of(m, 64);
  const auto result = plan_static(problem, view_of(m), small_machine(64));
  ASSERT_EQ(result.runner_ups.size(), 5u);
  for (const StaticRunnerUp& next : result.runner_ups)
    EXPECT_GE(next.cycles, result.plan->cost.cycles);
  const StaticBounds bounds = static_bounds(problem, view_of(m), small_machine(64));
  for (const Cycles bound : {bounds.kernel, bounds.bytes, bounds.waiting}) {
    EXPECT_GT(bound, Cycles(0));
    EXPECT_LT(bound, result.plan->cost.cycles);
  }
}

// Every figure of the text is looked up, and its share of the whole.
TEST(StaticSearch, ExplainsAPlanWithItsFiguresInTextAndJson) {
  Random random(23);
  const auto m = random_matrix(random, 40, 50, 4, 0.3);
  const Problem problem = problem_of(m, 64);
  const auto result = plan_static(problem, view_of(m), small_machine(64));
  const StaticExplanation e = explain_static(problem, view_of(m), small_machine(64), {});
  const std::string text = to_text(e, result);
  const PlanCost& cost = result.plan->cost;
  const auto line = [&](std::string_view name, Cycles cycles, Cycles whole) {
    EXPECT_THAT(text, testing::ContainsRegex(
                          fmt::format("  {} +{} cycles +{:.1f} %", name, cycles.value,
                                      100 * double(cycles.value) / double(whole.value))));
  };
  for (const PassCost& pass : cost.passes) {
    line(to_string(pass.pass), pass.cycles(), cost.cycles);
    for (const CostTerm& term : pass.terms)
      if (term.cycles > Cycles()) line(to_string(term.name), term.cycles, cost.cycles);
  }
  line("kernel", e.bounds.kernel, cost.passes.front().cycles());
  line("bytes", e.bounds.bytes, cost.passes.front().cycles());
  line("barriers and launches", e.bounds.waiting, cost.passes.front().cycles());
  const auto json = nlohmann::json::parse(to_json(e, result));
  EXPECT_EQ(json["bounds"]["waiting"], e.bounds.waiting.value);
  EXPECT_EQ(json["counted_cuts"], result.evaluations);
  EXPECT_THAT(text, HasSubstr(fmt::format("of {} cuts counted", result.evaluations)));
  ASSERT_EQ(json["runner_ups"].size(), result.runner_ups.size());
  for (std::size_t i = 0; i < result.runner_ups.size(); ++i) {
    EXPECT_EQ(json["runner_ups"][i]["cycles"], result.runner_ups[i].cycles.value);
    EXPECT_EQ(json["runner_ups"][i]["temp_bytes"], result.runner_ups[i].temp.value);
    EXPECT_THAT(text, HasSubstr(fmt::format("{} cycles", result.runner_ups[i].cycles.value)));
  }
  ASSERT_TRUE(e.popsparse);
  EXPECT_EQ(json["poplibs"]["counted_cycles"], e.popsparse->cycles.value);
  EXPECT_EQ(json["poplibs"]["bands"], e.popsparse_plan->bands.size() - 1);
  EXPECT_THAT(text, HasSubstr(fmt::format(
                        "{} cycles counted, {:.2f} times as many", e.popsparse->cycles.value,
                        double(e.popsparse->cycles.value) / double(cost.cycles.value))));
}

}  // namespace
}  // namespace tessera::planner
