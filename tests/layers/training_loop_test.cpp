// One training loop, written once, on this computer and on a modelled machine.

#include "tessera/examples/training_loop.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tessera/tests/layers/backends.hpp"

namespace tessera::test {
namespace {

template <class Backend>
std::vector<double> losses_of(const Problem& problem, sparse::Csr<float>& weights) {
  const auto executor = make_executor(2);
  auto layer = Backend::make(problem, *executor);
  const std::vector<double> losses = examples::train_layer(layer, weights, *executor);
  weights = layer.weights();
  return losses;
}

TEST(TrainingLoop, LearnsTheSameOnEveryLayer) {
  Problem problem = problem_of(DataType::Float, {1, 48, 64, 32}, {1, 1});
  const sparse::Csr<float> start = random_weights(problem, 0.3, 1)[0];
  sparse::Csr<float> host = start, tiles = start, two = start;
  const std::vector<double> on_host = losses_of<OnHost>(problem, host),
                            on_tiles = losses_of<OnTiles>(problem, tiles),
                            on_two = losses_of<OnTwoLayouts>(problem, two);
  ASSERT_GT(on_host.size(), 5u);
  EXPECT_LT(on_host.back(), 0.7 * on_host.front());
  ASSERT_EQ(on_host.size(), on_tiles.size());
  for (std::size_t i = 0; i < on_host.size(); ++i) {
    EXPECT_NEAR(on_tiles[i], on_host[i], 1e-3 * on_host[i]) << "step " << i;
    EXPECT_NEAR(on_two[i], on_host[i], 1e-3 * on_host[i]) << "step " << i;
  }
  EXPECT_NE(host.col, start.col) << "the pattern has changed";
}

}  // namespace
}  // namespace tessera::test
