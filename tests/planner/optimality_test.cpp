#include <gtest/gtest.h>

#include <vector>

#include "tessera/tests/planner/enumeration.hpp"
#include "tessera/tests/planner/recorded_plans.hpp"

// The search against enumeration on real sizes with everything priced: what a plan costs, and
// whether there is one, must be the same.
namespace tessera::planner {
namespace {

// `count` recorded layers, evenly over the table.
std::vector<RecordedPlan> some_layers(std::size_t count) {
  const std::vector<RecordedPlan> rows = read_recorded_plans();
  std::vector<RecordedPlan> some;
  for (std::size_t i = 0; i < count; ++i) some.push_back(rows[i * rows.size() / count]);
  return some;
}

void expect_optimal(std::size_t count, const device::Machine& machine) {
  int plans = 0;
  Options one_layout;
  one_layout.per_pass_plans = false;
  for (const RecordedPlan& row : some_layers(count)) {
    SCOPED_TRACE(row.text("id") + ": " + to_string(row.problem()));
    const PlanResult truth = plan_by_enumeration(row.problem(), machine, one_layout);
    EXPECT_TRUE(equal_answers(plan(row.problem(), machine, one_layout), truth));
    plans += truth.has_plan;
  }
  EXPECT_GT(plans, int(count) / 4);
}

TEST(Optimality, HoldsOnTwoHundredRecordedLayersOnSixtyFourTiles) {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 64;
  expect_optimal(200, machine);
}

TEST(Optimality, HoldsOnTwentyRecordedLayersOnTheWholeChip) {
  expect_optimal(20, device::machine_preset("gc200"));
}

TEST(CheapestPartitions, BeginWithThePlanAndRise) {
  const RecordedPlan row = some_layers(1).front();
  const device::Machine machine = device::machine_preset("gc200");
  Options pinned;
  Cycles before = plan(row.problem(), machine).plan.cost.cycles;
  const Cycles least = before;
  const auto partitions = cheapest_partitions(row.problem(), machine, {}, 20);
  ASSERT_EQ(partitions.size(), 20u);
  for (const PlanConstraints& pins : partitions) {
    pinned.constraints = pins;
    const Cycles cycles = plan(row.problem(), machine, pinned).plan.cost.cycles;
    EXPECT_GE(cycles, before);
    if (pins == partitions.front()) {
      EXPECT_EQ(cycles, least);
    }
    before = cycles;
  }
  EXPECT_GT(before, least);
}

TEST(EqualAnswers, TellsAPlanFromAnotherAndFromNone) {
  const RecordedPlan row = some_layers(1).front();
  const device::Machine machine = device::machine_preset("gc200");
  const PlanResult best = plan(row.problem(), machine);
  Options pinned;
  pinned.constraints.x = 1;
  EXPECT_TRUE(equal_answers(best, best));
  EXPECT_FALSE(equal_answers(best, plan(row.problem(), machine, pinned)));
  EXPECT_FALSE(equal_answers(best, {}));
}

}  // namespace
}  // namespace tessera::planner
