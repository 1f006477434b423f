#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/base/random.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/tests/planner/enumeration.hpp"

namespace tessera::planner {
namespace {

Problem training(Dims size, BlockShape block, double density) {
  Problem p{.size = size, .block = block, .density = density};
  p.grad_a = p.grad_w = true;
  return p;
}

device::Machine gc200() { return device::machine_preset("gc200"); }

Plan plan_of(const Problem& p, bool per_pass) {
  Options o = sparse_options();
  o.per_pass_plans = per_pass;
  return plan_or_throw(p, gc200(), o);
}

TEST(TwoLayouts, AreChosenExactlyWhereTheyCostLess) {
  int chosen = 0, left = 0;
  for (const Problem& p :
       {training({1, 512, 1024, 16}, {8, 8}, 0.0135),
        training({1, 1024, 1024, 4096}, {16, 16}, 0.01), training({1, 4096, 4096, 1}, {8, 8}, 0.05),
        training({1, 40, 48, 8}, {4, 4}, 0.2)}) {
    const Plan one = plan_of(p, false), best = plan_of(p, true);
    EXPECT_TRUE(one.backward.empty());
    if (best.backward.empty()) {
      ++left;
      EXPECT_EQ(best, one);
      continue;
    }
    ++chosen;
    EXPECT_LT(best.cost.cycles, one.cost.cycles);
  }
  EXPECT_GT(chosen, 0);
  EXPECT_GT(left, 0);
}

// Pins a layout and plans it alone.
Plan plan_alone(const Problem& problem, const Plan& layout) {
  Options o = sparse_options();
  o.constraints.x = layout.partition.x;
  o.constraints.y = layout.partition.y;
  o.constraints.z = layout.partition.z;
  return plan_or_throw(problem, gc200(), o);
}

TEST(TwoLayouts, CostWhatTheirPartsCostAndTheMoveOfTheValues) {
  const Problem p = training({1, 512, 1024, 16}, {8, 8}, 0.0135);
  const auto machine = gc200();
  const Plan plan = plan_of(p, true);
  ASSERT_EQ(plan.backward.size(), 1u);
  const auto [fwd, bwd] = two_problems(p, plan.runs_transposed(Pass::GradW));
  const Plan a = plan_alone(fwd, plan), b = plan_alone(bwd, plan.backward[0]);
  EXPECT_EQ(plan.backward[0], b);
  const RehomeCost move = rehome_cost(a, b, p, machine);
  EXPECT_EQ(plan.cost.cycles, a.cost.cycles + b.cost.cycles + move.cycles + move.overhead);
  EXPECT_EQ(plan.cost.find(Pass::GradA)->terms.front().name, Term::RehomeValues);
  EXPECT_EQ(plan.cost.passes.size(), 3u);
  EXPECT_GT(plan.cost.resident, std::max(a.cost.resident, b.cost.resident) + move.table);
}

// The cheapest layouts alone may fit each other badly: the values of such a pair can take longer to
// move than a whole pass.
TEST(TwoLayouts, AreTheCheapestPairOfTheCheapestPlansOfEach) {
  int pairs_of_others = 0;
  Problem elements = training({1, 1072, 560, 120}, {1, 1}, 0.129);
  elements.data_type = DataType::Float;
  for (const Problem& p : {elements, training({1, 512, 1024, 16}, {8, 8}, 0.0135),
                           training({1, 960, 768, 16}, {1, 1}, 0.052),
                           training({1, 1232, 1120, 200}, {8, 8}, 0.047)}) {
    SCOPED_TRACE(to_string(p));
    const Plan one = plan_of(p, false), best = plan_of(p, true);
    Cycles least = one.cost.cycles;
    for (const Plan& pair :
         cheapest_two_layouts(p, gc200(), sparse_options(), 4, nullptr, LayoutPairs::All))
      least = std::min(least, pair.cost.cycles);
    EXPECT_EQ(best.cost.cycles, least);
    if (best.backward.empty()) continue;
    const auto [fwd, bwd] = two_problems(p, best.runs_transposed(Pass::GradW));
    pairs_of_others +=
        plan_or_throw(fwd, gc200(), sparse_options()).partition != best.partition ||
        plan_or_throw(bwd, gc200(), sparse_options()).partition != best.backward[0].partition;
  }
  EXPECT_GT(pairs_of_others, 0);
}

// Pairs are left out by this bound, so a bound above the cost would lose the cheapest one.
TEST(TwoLayouts, HaveABoundOfTheMoveThatIsNeverAboveItsCost) {
  Random random(1);
  int close = 0, pairs = 0;
  for (int i = 0; i < 40; ++i) {
    const std::int64_t block = random.below(2) == 0 ? 1 : 8;
    const Problem p = training(
        {1, block * (8 + random.below(60)), block * (8 + random.below(60)), 1 + random.below(64)},
        {block, block}, 0.02 + 0.3 * random.unit());
    device::Machine machine = gc200();
    machine.tiles = 8 << random.below(6);
    machine.tiles_per_exchange_bus = 1 + random.below(4);
    for (const Plan& pair :
         cheapest_two_layouts(p, machine, sparse_options(), 3, nullptr, LayoutPairs::All)) {
      const Plan& to = pair.backward.front();
      const RehomeCost cost = rehome_cost(pair, to, p, machine);
      const Cycles least = least_rehome_cycles(pair, to, p, machine);
      EXPECT_LE(least, cost.cycles + cost.overhead) << to_string(p) << " on " << machine.tiles;
      close += 2 * least.value > (cost.cycles + cost.overhead).value;
      ++pairs;
    }
  }
  EXPECT_GT(pairs, 200);
  EXPECT_GT(2 * close, pairs) << "the bound is of little use";
}

TEST(TwoLayouts, AreNotTriedWhereTheRequestSpeaksOfOne) {
  const Problem p = training({1, 512, 1024, 16}, {8, 8}, 0.0135);
  const auto machine = gc200();
  Options pinned, shared, parity;
  pinned.constraints.x = 64;
  shared.shared_buckets = false;
  parity.poplibs_parity = true;
  for (const Options& o : {pinned, shared, parity})
    EXPECT_TRUE(plan_or_throw(p, machine, o).backward.empty());
  Problem forward_only = p;
  forward_only.grad_a = false;
  EXPECT_TRUE(plan_or_throw(forward_only, machine).backward.empty());
}

TEST(TwoLayouts, DoNotExceedTheTileTogether) {
  Problem p = training({1, 512, 1024, 16}, {8, 8}, 0.0135);
  device::Machine machine = gc200();
  const Plan roomy = plan_or_throw(p, machine, sparse_options());
  ASSERT_EQ(roomy.backward.size(), 1u);
  machine.tile_memory = roomy.cost.temp + roomy.cost.resident - Bytes(1);
  const PlanResult tight = plan(p, machine, sparse_options());
  EXPECT_TRUE(!tight.has_plan ||
              tight.plan.cost.temp + tight.plan.cost.resident <= machine.tile_memory);
}

TEST(TransposedStats, SwapRowsAndColumnsOfCountsAndMap) {
  PatternStats s{{2, 3}, {2, 0, 1}, {1, 2}, {1, 1}, {0, 0, 0, 0, 1, 2, 0, 1, 2, 0, 1, 3}};
  const PatternStats t = transposed(s);
  EXPECT_EQ(t.block, (BlockShape{3, 2}));
  EXPECT_EQ(t.row_counts, s.col_counts);
  EXPECT_EQ(t.before, (std::vector<std::int64_t>{0, 0, 0, 0, 0, 1, 1, 1, 0, 2, 2, 3}));
  EXPECT_EQ(transposed(t), s);
}

}  // namespace
}  // namespace tessera::planner
