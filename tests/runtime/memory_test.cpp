#include <gtest/gtest.h>

#include "tessera/tests/runtime/layer_case.hpp"

namespace tessera::runtime {
namespace {

Problem random_problem(Random& random) {
  const std::int64_t sides[] = {1, 1, 3, 4, 8, 16};
  const double densities[] = {0, 0.01, 0.1, 0.4, 1};
  Problem p;
  const std::int64_t side = sides[random.below(6)];
  p.block = {side, side};
  p.size = {1, side * (1 + random.below(40)), side * (1 + random.below(40)), 1 + random.below(70)};
  p.density = densities[random.below(5)];
  p.data_type = random.below(2) == 0 ? DataType::Half : DataType::Float;
  p.grad_a = random.below(2) == 0;
  p.grad_w = random.below(2) == 0;
  return p;
}

// The planner bounds what a tile needs; the engine adds up what the programs really hold.
TEST(Memory, EveryPlanThatIsFoundFitsTheTilesItWasFoundFor) {
  Random random(17);
  const auto executor = make_executor(1);
  int found = 0, tight = 0;
  for (int i = 0; i < 600; ++i) {
    Problem problem = random_problem(random);
    problem.size.g = i % 4 == 0 ? 1 + random.below(4) : 1;
    device::Machine machine = device::machine_preset("gc200");
    machine.tiles = problem.size.g * (1 + random.below(24));
    machine.tile_memory = Bytes(1024 << random.below(9));
    planner::Options options;
    options.available_memory_proportion = 1;
    options.shared_buckets = random.below(2) == 0;
    options.constraints.grad_w_exchange_buckets = random.below(2) == 0;
    const planner::PlanResult planned = planner::plan(problem, machine, options);
    if (planned.status != planner::PlanStatus::Found) continue;
    ++found;
    SCOPED_TRACE(testing::Message()
                 << "case " << i << ": " << to_string(problem) << " on " << machine.tiles
                 << " tiles of " << machine.tile_memory.value << "\n"
                 << to_string(planned.plan));
    const planner::PlanCost& cost = planned.plan.cost;
    const Bytes planned_bytes = cost.temp + cost.resident;
    ASSERT_NO_THROW({
      const FullyConnected layer(problem, planned.plan, machine, device::ExchangeMode::Share,
                                 *executor);
      // If no tile is free, the last one holds the travel words, which the planner leaves out.
      const Bytes travel_words(4 * (3 + planned.plan.partition.x));
      EXPECT_LE(layer.high_water(), planned_bytes + travel_words);
      tight += layer.high_water().value * 2 > machine.tile_memory.value;
    });
  }
  EXPECT_GT(found, 200);
  EXPECT_GT(tight, 20) << "no machine was nearly full";
}

}  // namespace
}  // namespace tessera::runtime
