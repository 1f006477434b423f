// FullyConnected::pattern_bytes beside the sizes of the buckets.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/tests/runtime/layer_case.hpp"
#include "tessera/tests/runtime/two_layouts.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::runtime {
namespace {

LayerCase small_case() {
  LayerCase c;
  c.weights = random_weights(60, 80, {1, 1}, 0.2, 3);
  c.partition = {1, 3, 4, 1};
  c.room = 2;
  return c;
}

std::int64_t travel_bytes(const FullyConnected& layer) {
  return 4 * (3 + layer.travel().x_end());  // three words, and one for each distance along x
}

// Bytes of one bucket: of its words, and of its values.
std::int64_t word_bytes(const partitioner::TileGrid& grid) {
  return (grid.meta_words + grid.grad_a_words) * grid.word_bits / 8;
}
std::int64_t value_bytes(const partitioner::TileGrid& grid) {
  return grid.blocks * grid.block.area() * bytes_of(grid.data_type);
}

TEST(PatternBytes, CountWordsAndValuesOfEveryBucketAndTheTravelWords) {
  for (const bool separate : {false, true}) {
    LayerCase c = small_case();
    c.separate_grad_a = separate;
    const auto executor = make_executor(1);
    FullyConnected layer(c.problem(), c.plan(), c.machine(), device::ExchangeMode::Share,
                         *executor);
    EXPECT_EQ(layer.pattern_bytes(), Bytes()) << "no pattern is set";
    ASSERT_FALSE(layer.set_weights(c.weights));
    const partitioner::TileGrid& grid = layer.buckets().grid;
    EXPECT_EQ(layer.pattern_bytes().value,
              grid.buckets() * (word_bytes(grid) + value_bytes(grid)) + travel_bytes(layer));
  }
}

// The bytes of another type would be read as numbers of this one.
TEST(EncodedValues, AreRefusedBeforeThereAreWeightsAndInAnotherType) {
  const LayerCase c = small_case();
  const auto executor = make_executor(1);
  FullyConnected layer(c.problem(), c.plan(), c.machine(), device::ExchangeMode::Share, *executor);
  EXPECT_THAT(test::refusal([&] { layer.encoded_values<float>(); }),
              testing::HasSubstr("set_weights first"));
  EXPECT_THAT(test::refusal([&] { layer.saved_weights(); }), testing::HasSubstr("set_weights"));
  ASSERT_FALSE(layer.set_weights(c.weights));
  EXPECT_THAT(test::refusal([&] { layer.encoded_values<Half>(); }), testing::HasSubstr("half"));
  EXPECT_EQ(std::ssize(layer.encoded_values<float>()),
            layer.buckets().grid.buckets() * layer.buckets().values_per_bucket());
}

TEST(PatternBytes, IncludeTheWordsAndTablesOfALayoutOfGradA) {
  const LayerCase c = small_case();
  Problem problem = c.problem();
  const auto executor = make_executor(1);
  const TwoLayouts two = two_layouts(problem, true, 8);
  FullyConnected layer(problem, two.plan, two.machine, device::ExchangeMode::Share, *executor);
  ASSERT_FALSE(layer.set_weights(c.weights));
  const auto bytes = [&](const planner::Plan& plan, const Problem& of, bool moves_values) {
    const partitioner::TileGrid grid = tile_grid(of, plan, two.machine);
    const std::int64_t values = grid.blocks * grid.block.area();
    return grid.buckets() * (word_bytes(grid) + (moves_values ? 4 * values : value_bytes(grid)));
  };
  const auto [forward, transposed] =
      planner::two_problems(problem, two.plan.runs_transposed(Pass::GradW));
  const std::int64_t words = layer.pattern_bytes().value -
                             bytes(two.plan, forward, /*moves_values=*/false) -
                             bytes(two.plan.backward.front(), transposed, /*moves_values=*/true);
  EXPECT_GE(words, 2 * 16) << "travel words of both layouts";
  EXPECT_LT(words, 2 * 200);
}

}  // namespace
}  // namespace tessera::runtime
