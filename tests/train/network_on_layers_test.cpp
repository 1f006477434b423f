#include "tessera/train/network_on_layers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/planner/plan_network.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/tests/runtime/network_twin.hpp"
#include "tessera/train/network.hpp"

namespace tessera::train {
namespace {

using codelets::Activation;
using codelets::Loss;
using runtime::NetworkSpec;
using runtime::Twin;

device::Machine machine_of_24() {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 24;
  return machine;
}

// Layers of both kinds, without weights.
template <class L>
std::function<L(const Problem&)> maker(Executor& executor);

template <>
std::function<host::HostLayer(const Problem&)> maker(Executor& executor) {
  return host_layers(executor);
}
template <>
std::function<runtime::FullyConnected(const Problem&)> maker(Executor& executor) {
  return [&executor](const Problem& problem) {
    const device::Machine machine = machine_of_24();
    return runtime::FullyConnected(
        problem, planner::plan_or_throw(problem, machine, planner::sparse_options()), machine,
        device::ExchangeMode::Share, executor);
  };
}

NetworkSpec perceptron(Loss loss, BlockShape block = {1, 1}) {
  return {.layers = {{36, 28, block, 0.3, true, {Activation::Relu}},
                     {40, 36, block, 0.25, true, {Activation::Gelu}},
                     {12, 40, block, 0.5, true, {}}},
          .batch = 22,
          .loss = loss,
          .optimiser = {.rule = codelets::Adam{.learning_rate = 0.01}}};
}

template <class N>
double worst_weight(const N& network, const Twin& twin) {
  double worst = 0;
  for (std::size_t l = 0; l < twin.spec.layers.size(); ++l) {
    const sparse::Csr<float> weights = network.weights(std::int64_t(l));
    twin.for_each_value(l, [&](std::size_t i, std::int64_t, std::int64_t) {
      worst = std::max(worst, std::abs(double(weights.values[i]) - twin.values[l][i]));
    });
    for (std::size_t r = 0; twin.spec.layers[l].bias && r < twin.biases[l].size(); ++r)
      worst =
          std::max(worst, std::abs(double(network.bias(std::int64_t(l))[r]) - twin.biases[l][r]));
  }
  return worst;
}

template <class L>
class OnLayers : public testing::Test {};
using Layers = testing::Types<host::HostLayer, runtime::FullyConnected>;
TYPED_TEST_SUITE(OnLayers, Layers);

TYPED_TEST(OnLayers, TrainsTenStepsAsPlainLoopsInDoublePrecisionDo) {
  const auto executor = make_executor(2);
  for (const codelets::Optimiser& optimiser : runtime::optimisers())
    for (const Loss loss : {Loss::SoftmaxCrossEntropy, Loss::MeanSquaredError}) {
      SCOPED_TRACE(std::string(name_of(optimiser)) + ", " + std::string(to_string(loss)));
      NetworkSpec spec =
          perceptron(loss, states_of(optimiser) == 2 ? BlockShape{4, 4} : BlockShape{});
      spec.optimiser = optimiser;
      NetworkOnLayers<TypeParam, float> network(spec, maker<TypeParam>(*executor), *executor);
      Twin twin(spec);
      twin.give(network);
      for (int t = 1; t <= 10; ++t) {
        network.run(twin.batch());
        const double loss_of_twin = twin.step(t);
        ASSERT_NEAR(network.loss(), loss_of_twin, 1e-4 * (1 + loss_of_twin)) << "step " << t;
      }
      EXPECT_LE(worst_weight(network, twin), 2e-3 * 0.01 + 1e-5);
    }
}

// The modelled machine adds sums up in another order, so bits may differ, but not by more than both
// may from the exact result.
TYPED_TEST(OnLayers, AgreesWithTheNetworkOfAModelledMachine) {
  const auto executor = make_executor(2);
  NetworkSpec spec = perceptron(Loss::SoftmaxCrossEntropy);
  spec.layers[1].dense = true;
  spec.layers[1].density = 1;
  const device::Machine machine = machine_of_24();
  NetworkOnLayers<TypeParam, float> network(spec, maker<TypeParam>(*executor), *executor);
  runtime::Network modelled(spec, planner::plan_network(spec, machine).plans, machine,
                            device::ExchangeMode::Share, *executor);
  const Twin twin(spec);
  twin.give(network);
  twin.give(modelled);
  for (int t = 0; t < 10; ++t) {
    network.run(twin.batch());
    modelled.run(twin.batch());
    ASSERT_NEAR(network.loss(), modelled.loss(), 1e-5 * (1 + modelled.loss()));
  }
  for (std::int64_t l = 0; l < 3; ++l) {
    const auto a = network.weights(l), b = modelled.weights(l);
    ASSERT_EQ(a.values.size(), b.values.size());
    for (std::size_t i = 0; i < a.values.size(); ++i)
      ASSERT_NEAR(a.values[i], b.values[i], 3e-5) << "layer " << l + 1;
  }
}

TYPED_TEST(OnLayers, ComputesOutputsWithoutALossAndTimesItsWork) {
  const auto executor = make_executor(1);
  NetworkSpec spec = perceptron(Loss::SoftmaxCrossEntropy);
  spec.loss.reset();
  spec.data_type = DataType::Half;
  NetworkOnLayers<TypeParam, Half> network(spec, maker<TypeParam>(*executor), *executor);
  Twin twin(spec);
  twin.give(network);
  const std::vector<WorkSeconds> times = network.run(twin.batch());
  twin.forward();
  for (std::int64_t r = 0; r < 12; ++r)
    for (std::int64_t c = 0; c < spec.batch; ++c)
      ASSERT_NEAR(network.outputs()(r, c), twin.results.back()[std::size_t(r)][std::size_t(c)],
                  0.02);
  ASSERT_EQ(times.size(), 6u);  // Fwd and activation of three layers
  for (const WorkSeconds& work : times) EXPECT_GE(work.seconds, 0);
}

TEST(OnLayersOfThisComputer, HasTheSameBitsOnAnyNumberOfThreads) {
  const NetworkSpec spec = perceptron(Loss::SoftmaxCrossEntropy);
  const Twin twin(spec);
  std::vector<sparse::Csr<float>> weights;
  for (const int threads : {1, 3}) {
    const auto executor = make_executor(threads);
    NetworkOnLayers<host::HostLayer, float> network(spec, host_layers(*executor), *executor);
    twin.give(network);
    for (int t = 0; t < 3; ++t) network.run(twin.batch());
    for (std::int64_t l = 0; l < 3; ++l) weights.push_back(network.weights(l));
  }
  for (std::size_t l = 0; l < 3; ++l) EXPECT_EQ(weights[l], weights[3 + l]);
}

TEST(OnLayersOfThisComputer, RefusesWhatDoesNotBelongToIt) {
  const auto executor = make_executor(1);
  NetworkSpec spec = perceptron(Loss::SoftmaxCrossEntropy);
  using Host = NetworkOnLayers<host::HostLayer, float>;
  Host network(spec, host_layers(*executor), *executor);
  Twin twin(spec);
  EXPECT_THROW(network.run(twin.batch()), Error);  // no weights yet
  EXPECT_THROW(static_cast<void>(network.weights(0)), Error);
  EXPECT_THROW(static_cast<void>(network.set_weights(3, twin.weights[0])), Error);
  EXPECT_THROW(static_cast<void>(network.set_weights(1, twin.weights[0])), Error);
  EXPECT_THROW(network.set_bias(0, twin.bias[2]), Error);
  twin.give(network);
  twin.labels[0] = 12;
  EXPECT_THROW(network.run(twin.batch()), Error);
  spec.data_type = DataType::Half;
  EXPECT_THROW(Host(spec, host_layers(*executor), *executor), Error);
  spec.layers.clear();
  EXPECT_THROW(Host(spec, host_layers(*executor), *executor), Error);
}

// A step that is refused leaves the parameters of the one before.
TEST(NetworkOnLayers, EndsWithStepAndLayerWhenTheLossIsNotFinite) {
  const auto executor = make_executor(1);
  runtime::NetworkSpec spec{.layers = {{29, 37, {1, 1}, 0.3, true, {codelets::Activation::Relu}},
                                       {10, 29, {1, 1}, 0.5, true, {}}},
                            .batch = 22,
                            .loss = codelets::Loss::SoftmaxCrossEntropy,
                            .optimiser = {.rule = codelets::Sgd{1e30}}};
  NetworkOnLayers<host::HostLayer, float> network(spec, host_layers(*executor), *executor);
  const runtime::Twin twin(spec);
  twin.give(network);
  std::vector<float> before;
  for (int step = 1; step < 10; ++step) {
    before.assign(network.bias(0).begin(), network.bias(0).end());
    try {
      network.run(twin.batch());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
      const std::string text = error.what();
      EXPECT_EQ(text.find("network: the loss of step " + std::to_string(step) + " is "), 0u)
          << text;
      EXPECT_NE(text.find(" in layer "), std::string::npos) << text;
      EXPECT_TRUE(std::ranges::equal(network.bias(0), before));
      return;
    }
  }
  FAIL() << "it went on";
}

}  // namespace
}  // namespace tessera::train
