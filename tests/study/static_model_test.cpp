#include "tessera/study/static_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/sparse/random.hpp"
#include "tessera/study/static_layer.hpp"

namespace tessera::study {
namespace {

using testing::HasSubstr;

device::Machine small_machine() {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 32;
  return machine;
}

constexpr Problem kLayer{.size = {1, 64, 96, 20}};

TEST(StaticModel, HasTheCostOfTheRandomPatternOfSeedOne) {
  StaticModel model(kLayer, small_machine(), {});
  for (const std::int64_t side : {1, 4, 16})
    for (const double density : {0.05, 0.3, 0.05}) {
      const Form form{.block = {side, side}, .density = density};
      const auto matrix = sparse::random_pattern(64, 96, form.block, density, 1);
      planner::StaticPlanner planner(block_pattern(matrix));
      const auto expected =
          planner.quick_cost(with_static_sums(model.problem(form)), small_machine());
      const Cost found = model.sparse(form);
      ASSERT_TRUE(found.value) << found.note;
      EXPECT_EQ(*found.value, double(expected.cost->cycles.value));
      EXPECT_EQ(found.tiles, expected.tiles);
    }
}

TEST(StaticModel, SaysWhyThereIsNoCost) {
  StaticModel model(kLayer, small_machine(), {});
  EXPECT_THAT(model.sparse({.block = {2, 2}, .density = 0.1}).note, HasSubstr("no static kernel"));
  StaticModel large({.size = {1, 4096, 4096, 20}}, small_machine(), {});
  EXPECT_THAT(large.sparse({.block = {1, 1}, .density = 0.5}).note,
              HasSubstr("8388608 blocks; 1048576 are planned at most"));
}

// A look that stops at the floor of the cost must not miss a pattern that pays.
TEST(StaticModel, LooksFindWhatCostsLess) {
  StaticModel model(kLayer, small_machine(), {});
  for (const std::int64_t side : {1, 8}) {
    const double cycles = *model.sparse({.block = {side, side}, .density = 0.4}).value;
    for (const double density : {0.1, 0.3, 0.4, 0.402, 0.42, 0.6}) {
      const Form form{.block = {side, side}, .density = density};
      EXPECT_EQ(model.look(form, cycles + 1).pays, *model.sparse(form).value < cycles + 1);
    }
  }
  EXPECT_FALSE(model.look({.block = {3, 3}, .density = 0.5}, 1e9).pays);
}

}  // namespace
}  // namespace tessera::study
