#include "tessera/tools/static_study.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/sparse/random.hpp"
#include "tessera/tools/static_layer.hpp"

namespace tessera::tools {
namespace {

using testing::HasSubstr;

device::Machine small_machine() {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 32;
  return machine;
}

Problem layer(BlockShape block, double density) {
  return {.size = {1, 64, 96, 20}, .block = block, .density = density};
}

TEST(StaticStudy, HasTheCostOfTheRandomPatternOfSeedOne) {
  StaticStudy study;
  for (const std::int64_t side : {1, 4, 16})
    for (const double density : {0.05, 0.3, 0.05}) {
      const Problem problem = layer({side, side}, density);
      const auto matrix = sparse::random_pattern(64, 96, problem.block, density, 1);
      planner::StaticPlanner planner(block_pattern(matrix));
      const auto expected = planner.quick_cost(with_static_sums(problem), small_machine());
      const auto found = study.random(problem, small_machine(), {});
      ASSERT_TRUE(found.cost) << found.reason;
      EXPECT_EQ(found.cost, expected.cost);
      EXPECT_EQ(found.tiles, expected.tiles);
    }
}

TEST(StaticStudy, SaysWhyThereIsNoCost) {
  StaticStudy study;
  EXPECT_THAT(study.random(layer({2, 2}, 0.1), small_machine(), {}).reason,
              HasSubstr("no static kernel"));
  Problem large = layer({1, 1}, 0.5);
  large.size = {1, 4096, 4096, 20};
  EXPECT_THAT(study.random(large, small_machine(), {}).reason,
              HasSubstr("8388608 blocks; 1048576 are planned at most"));
}

TEST(StaticStudy, NoPatternAboveTheHighestDensityCostsLess) {
  StaticStudy study;
  for (const std::int64_t side : {1, 8}) {
    const Problem problem = layer({side, side}, 0.4);
    const double cycles =
        double(study.random(problem, small_machine(), {}).cost.value().cycles.value);
    const double highest = StaticStudy::highest_density(problem, small_machine(), cycles + 1);
    EXPECT_GE(highest, 0.4);
    for (const double more : {0.002, 0.02, 0.2}) {
      if (highest + more > 1) continue;
      const auto cost =
          study.random(layer({side, side}, highest + more), small_machine(), {}).cost.value();
      EXPECT_GT(double(cost.cycles.value), cycles);
    }
  }
  EXPECT_EQ(StaticStudy::highest_density(layer({1, 1}, 1), small_machine(), 1), 0);
  EXPECT_EQ(StaticStudy::highest_density(layer({3, 3}, 1), small_machine(), 1e9), 0);
}

}  // namespace
}  // namespace tessera::tools
