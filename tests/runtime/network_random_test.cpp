#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/plan_network.hpp"
#include "tessera/runtime/network.hpp"
#include "tessera/tests/runtime/network_twin.hpp"
#include "tessera/tests/runtime/random_network.hpp"

// Small networks drawn at random, against plain loops in double precision. Every tile has memory of
// its own, whose bytes are NaN until somebody writes them: a sum that takes in padding shows.
namespace tessera::runtime {
namespace {

using codelets::Activation;
using codelets::ActivationRule;
using codelets::Loss;

constexpr std::uint64_t kSeed = 41;

double worst_weight(const Network& network, const Twin& twin, std::size_t l) {
  const sparse::Csr<float> weights = network.weights(std::int64_t(l));
  const bool is_dense = twin.spec.layers[l].dense;  // it returns all, row by row
  double worst = 0;
  twin.for_each_value(l, [&](std::size_t i, std::int64_t x, std::int64_t y) {
    const std::size_t at = is_dense ? std::size_t(x * twin.spec.layers[l].inputs + y) : i;
    const double off = std::abs(double(weights.values[at]) - twin.values[l][i]);
    worst = off <= worst ? worst : off;  // a NaN stays
  });
  return worst;
}

double worst_bias(const Network& network, const Twin& twin, std::size_t l) {
  double worst = 0;
  for (std::size_t row = 0; twin.spec.layers[l].bias && row < twin.biases[l].size(); ++row) {
    const double off = std::abs(double(network.bias(std::int64_t(l))[row]) - twin.biases[l][row]);
    worst = off <= worst ? worst : off;
  }
  return worst;
}

void train(RandomNetwork drawn, double of_loss, double of_parameters) {
  const auto executor = make_executor(1);
  Network network(drawn.spec, planner::plan_network(drawn.spec, drawn.machine).plans, drawn.machine,
                  drawn.mode, *executor);
  Twin twin(drawn.spec);
  twin.give(network);
  for (int t = 1; t <= 3; ++t) {
    network.run(twin.batch());
    const double loss = twin.step(t);
    ASSERT_NEAR(network.loss(), loss, of_loss * (1 + loss)) << "step " << t;
    for (std::size_t l = 0; l < drawn.spec.layers.size(); ++l) {
      ASSERT_LE(worst_weight(network, twin, l), of_parameters) << "step " << t << ", layer " << l;
      ASSERT_LE(worst_bias(network, twin, l), of_parameters) << "step " << t << ", layer " << l;
    }
  }
}

TEST(RandomNetworks, TrainAsPlainLoopsInDoublePrecisionDo) {
  Random random(kSeed);
  for (int i = 0; i < 400; ++i) {
    const RandomNetwork drawn = draw_network(random, i);
    SCOPED_TRACE(text_of(drawn, i));
    train(drawn, 1e-4, 1e-4);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(RandomNetworks, TrainInHalfWithinItsRounding) {
  Random random(kSeed + 1);
  for (int i = 0; i < 100; ++i) {
    RandomNetwork drawn = draw_network(random, i);
    drawn.spec.data_type = DataType::Half;
    SCOPED_TRACE(text_of(drawn, i));
    train(drawn, 0.02, 0.02);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// The last layer keeps its own sums for the derivative of GELU. The padding of their columns, which
// a batch of 17 on two tiles has, came into the gradient of its bias.
TEST(RandomNetworks, TrainALastLayerWithGeluAndBiasOnEveryNumberOfTiles) {
  for (const std::int64_t tiles : {1, 2, 5, 16})
    for (const std::int64_t batch : {1, 16, 17, 23})
      for (const Loss loss : {Loss::SoftmaxCrossEntropy, Loss::MeanSquaredError}) {
        RandomNetwork one{.spec = {.layers = {{14, 23, {1, 1}, 0.3, true, {Activation::Gelu}}},
                                   .batch = batch,
                                   .loss = loss,
                                   .optimiser = {.rule = codelets::Sgd{0.1}}}};
        one.machine.tiles = tiles;
        SCOPED_TRACE(text_of(one, 0));
        train(one, 1e-4, 1e-4);
      }
}

// Returns the message of the error that ends the training of a network whose rate is too large.
std::string end_of_training(DataType type, const std::function<void(Network&, int)>& after_step) {
  const auto executor = make_executor(1);
  NetworkSpec spec{
      .layers = {{29, 37, {1, 1}, 0.3, true, {Activation::Relu}}, {10, 29, {4, 4}, 0.5, true, {}}},
      .batch = 22,
      .loss = Loss::SoftmaxCrossEntropy,
      .optimiser = {.rule = codelets::Sgd{1e30}}};
  spec.data_type = type;
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 12;
  Network network(spec, planner::plan_network(spec, machine).plans, machine,
                  device::ExchangeMode::Isolate, *executor);
  const Twin twin(spec);
  twin.give(network);
  for (int step = 1; step < 10; ++step) {
    after_step(network, step);
    try {
      network.run(twin.batch());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
      after_step(network, step);
      return error.what();
    }
    EXPECT_TRUE(std::isfinite(network.loss()));
  }
  return "it went on";
}

TEST(RandomNetworks, EndWithStepAndLayerWhenTheirLossIsNotFiniteAndKeepTheParametersBefore) {
  for (const DataType type : {DataType::Float, DataType::Half}) {
    int last_step = 0;
    std::vector<float> before;
    const std::string message = end_of_training(type, [&](Network& network, int step) {
      const auto bias = network.bias(0);
      const std::vector<float> now(bias.begin(), bias.end());
      if (step == last_step) {
        EXPECT_EQ(0, std::memcmp(now.data(), before.data(), now.size() * sizeof(float)));
      }
      last_step = step;
      before = now;
    });
    const std::string start =
        "network: the loss of step " + std::to_string(last_step) + " is nan; the largest value is ";
    EXPECT_EQ(message.substr(0, start.size()), start);
    EXPECT_NE(message.find(" in layer "), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace tessera::runtime
