#include "tessera/train/network.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/planner/plan_network.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/tests/runtime/network_twin.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/train/network_file.hpp"
#include "tessera/train/rewire/grow.hpp"

namespace tessera::train {
namespace {

using codelets::Activation;
using runtime::NetworkSpec;
using runtime::Twin;

device::Machine machine_of_24() {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 24;
  return machine;
}

// The targets that a network trains on.
enum class Target { Host, Machine };

MakeLayer maker(Target target, Executor& executor) {
  if (target == Target::Host) return host_layers(executor);
  return [&executor](const Problem& problem) {
    const device::Machine machine = machine_of_24();
    return machine_layer(
        {problem, planner::plan_or_throw(problem, machine, planner::sparse_options()), machine,
         device::ExchangeMode::Share, executor},
        machine, executor);
  };
}

// A network with the parameters of a twin.
template <class T = float>
struct NetworkRun {
  NetworkRun(const Twin& twin, Executor& executor, Target target = Target::Host)
      : network({.spec = twin.spec}, twin.weights, maker(target, executor), executor),
        state(network.first_state(twin.spec.optimiser)) {
    for (std::int64_t l = 0; l < network.layers(); ++l)
      network.state(l).bias = twin.bias[std::size_t(l)];
  }
  float step(const Twin& twin) { return network.run(twin.batch(), state); }

  Network<T> network;
  NetworkState state;
};

NetworkSpec perceptron(codelets::Loss loss, BlockShape block = {1, 1}) {
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
    const sparse::Csr<float>& weights = network.weights(std::int64_t(l));
    const std::vector<float>& bias = network.state(std::int64_t(l)).bias;
    twin.for_each_value(l, [&](std::size_t i, std::int64_t, std::int64_t) {
      worst = std::max(worst, std::abs(double(weights.values[i]) - twin.values[l][i]));
    });
    for (std::size_t r = 0; twin.spec.layers[l].bias && r < twin.biases[l].size(); ++r)
      worst = std::max(worst, std::abs(double(bias[r]) - twin.biases[l][r]));
  }
  return worst;
}

class OnLayers : public testing::TestWithParam<Target> {};
INSTANTIATE_TEST_SUITE_P(, OnLayers, testing::Values(Target::Host, Target::Machine),
                         [](const auto& of) {
                           return of.param == Target::Host ? "ThisComputer" : "Machine";
                         });

TEST_P(OnLayers, TrainsTenStepsAsPlainLoopsInDoublePrecisionDo) {
  const auto executor = make_executor(2);
  for (const codelets::Optimiser& optimiser : runtime::optimisers())
    for (const codelets::Loss loss :
         {codelets::Loss::SoftmaxCrossEntropy, codelets::Loss::MeanSquaredError}) {
      SCOPED_TRACE(std::string(name_of(optimiser)) + ", " + std::string(to_string(loss)));
      NetworkSpec spec =
          perceptron(loss, states_of(optimiser) == 2 ? BlockShape{4, 4} : BlockShape{});
      spec.optimiser = optimiser;
      Twin twin(spec);
      NetworkRun run(twin, *executor, GetParam());
      for (int t = 1; t <= 10; ++t) {
        const float got = run.step(twin);
        const double loss_of_twin = twin.step(t);
        ASSERT_NEAR(got, loss_of_twin, 1e-4 * (1 + loss_of_twin)) << "step " << t;
      }
      EXPECT_LE(worst_weight(run.network, twin), 2e-3 * 0.01 + 1e-5);
    }
}

// The modelled machine adds sums up in another order, so bits may differ, but not by more than both
// may from the exact result.
TEST_P(OnLayers, AgreesWithTheNetworkOfAModelledMachine) {
  const auto executor = make_executor(2);
  NetworkSpec spec = perceptron(codelets::Loss::SoftmaxCrossEntropy);
  spec.layers[1].dense = true;
  spec.layers[1].density = 1;
  const device::Machine machine = machine_of_24();
  const Twin twin(spec);
  NetworkRun run(twin, *executor, GetParam());
  runtime::Network modelled(spec, planner::plan_network(spec, machine).plans, machine,
                            device::ExchangeMode::Share, *executor);
  twin.give(modelled);
  for (int t = 0; t < 10; ++t) {
    const float loss = run.step(twin);
    modelled.run(twin.batch());
    ASSERT_NEAR(loss, modelled.loss(), 1e-5 * (1 + modelled.loss()));
  }
  for (std::int64_t l = 0; l < 3; ++l) {
    const auto a = run.network.weights(l), b = modelled.weights(l);
    ASSERT_EQ(a.values.size(), b.values.size());
    for (std::size_t i = 0; i < a.values.size(); ++i)
      ASSERT_NEAR(a.values[i], b.values[i], 3e-5) << "layer " << l + 1;
  }
}

TEST(OnLayersOfThisComputer, ComputesOutputsWithoutALossAndTimesItsWork) {
  const auto executor = make_executor(1);
  NetworkSpec spec = perceptron(codelets::Loss::SoftmaxCrossEntropy);
  spec.loss.reset();
  spec.data_type = DataType::Half;
  Twin twin(spec);
  NetworkRun<Half> run(twin, *executor);
  std::int64_t works = 0;  // Fwd and activation of three layers
  run.network.run(twin.batch(), run.state,
                  [&](planner::NetworkWork, std::int64_t layer, double seconds) {
                    EXPECT_EQ(layer, works++ / 2);
                    EXPECT_GE(seconds, 0);
                  });
  EXPECT_EQ(works, 6);
  twin.forward();
  for (std::int64_t r = 0; r < 12; ++r)
    for (std::int64_t c = 0; c < spec.batch; ++c)
      ASSERT_NEAR(float(run.network.input(3)(r, c)),
                  twin.results.back()[std::size_t(r)][std::size_t(c)], 0.02);
}

TEST(OnLayersOfThisComputer, BeginsRowsOfOperandsOnCacheLines) {
  const auto executor = make_executor(1);
  const auto stride = [&](auto value, std::int64_t batch) {
    Network<decltype(value)> network({.sizes = {20, 30, 10}, .batch = batch},
                                     host_layers(*executor), *executor);
    EXPECT_EQ(network.input(1).cols, batch);
    EXPECT_EQ(network.output_gradient(0).row_stride, network.input(0).row_stride);
    return network.input(0).row_stride;
  };
  EXPECT_EQ(stride(1.0f, 100), 112);
  EXPECT_EQ(stride(1.0f, 17), 32);
  EXPECT_EQ(stride(1.0f, 16), 16);
  EXPECT_EQ(stride(1.0f, 15), 15);  // one column in 16 would be read in vain
}

// ReLU with a cap, GELU and no bias take loops of their own.
TEST(OnLayersOfThisComputer, TrainsInHalfAsTheTilesDo) {
  const auto executor = make_executor(2);
  NetworkSpec spec = perceptron(codelets::Loss::SoftmaxCrossEntropy);
  spec.data_type = DataType::Half;
  spec.layers[0].activation.cap = 0.5f;
  spec.layers[1].bias = false;
  const device::Machine machine = machine_of_24();
  runtime::Network modelled(spec, planner::plan_network(spec, machine).plans, machine,
                            device::ExchangeMode::Share, *executor);
  const Twin twin(spec);
  NetworkRun<Half> run(twin, *executor);
  twin.give(modelled);
  for (int t = 0; t < 5; ++t) {
    const float loss = run.step(twin);
    modelled.run(twin.batch());
    ASSERT_NEAR(loss, modelled.loss(), 2e-3 * (1 + modelled.loss()));
  }
}

TEST(OnLayersOfThisComputer, HasTheSameBitsOnAnyNumberOfThreads) {
  const NetworkSpec spec = perceptron(codelets::Loss::SoftmaxCrossEntropy);
  const Twin twin(spec);
  std::vector<sparse::Csr<float>> weights;
  for (const int threads : {1, 3}) {
    const auto executor = make_executor(threads);
    NetworkRun run(twin, *executor);
    for (int t = 0; t < 3; ++t) run.step(twin);
    for (std::int64_t l = 0; l < 3; ++l) weights.push_back(run.network.weights(l));
  }
  for (std::size_t l = 0; l < 3; ++l) EXPECT_EQ(weights[l], weights[3 + l]);
}

TEST(OnLayersOfThisComputer, RefusesWhatDoesNotBelongToIt) {
  const auto executor = make_executor(1);
  const NetworkSpec spec = perceptron(codelets::Loss::SoftmaxCrossEntropy);
  using Host = NetworkRun<>;
  const Twin twin(spec);
  const auto refuses = [&](const std::function<void(Twin&)>& change) {
    Twin changed = twin;
    change(changed);
    EXPECT_THROW(Host(changed, *executor).step(changed), Error);
  };
  refuses([](Twin& t) { t.weights.pop_back(); });
  refuses([](Twin& t) { std::swap(t.weights[0], t.weights[1]); });
  refuses([](Twin& t) { t.labels[0] = 12; });
  refuses([](Twin& t) { t.spec.data_type = DataType::Half; });
  refuses([](Twin& t) { t.spec.layers.clear(); });
  refuses([](Twin& t) { t.spec.layers[0].recompute = true; });
  refuses([](Twin& t) { t.spec.layers[1].operands = Placement::AtHome; });
  refuses([](Twin& t) {
    t.spec.layers[1].dense = true;
    t.spec.layers[1].density = 1;
  });
  EXPECT_THROW(spec_of({.sizes = {28, 12}, .spec = spec}), Error);
  EXPECT_THROW(spec_of({.constant_fan_in = true, .spec = NetworkSpec{}}), Error);
}

// Buckets for a hundredth of the weights of the second layer; and buckets for all that a layer has,
// which then gets all places.
TEST(OnLayersOfAMachine, NamesTheLayerWhoseWeightsDoNotFit) {
  const auto executor = make_executor(1);
  const NetworkOptions options{.sizes = {64, 48, 40, 4}, .density = 0.3, .batch = 8};
  const MakeLayer make = maker(Target::Machine, *executor);
  int made = 0;
  const MakeLayer with_small_second = [&](const Problem& problem) {
    Problem planned = problem;
    if (++made == 2) planned.density = 0.003;
    return make(planned);
  };
  EXPECT_THAT(test::message_of([&] { Network<>(options, with_small_second, *executor); },
                               ErrorCode::NoSolution),
              testing::HasSubstr("the weights of layer 2 do not fit"));
  Network<> network(options, make, *executor);
  const sparse::Csr<float>& weights = network.weights(1);
  const sparse::PatternChange fill{{}, random_places(weights, free_places(weights), /*seed=*/1)};
  EXPECT_THAT(test::message_of([&] { network.prepare(1, fill); }, ErrorCode::NoSolution),
              testing::HasSubstr("the changed weights of layer 2 do not fit their buckets: "));
}

// A step that is refused leaves the parameters of the one before.
TEST(OnLayersOfThisComputer, RefusesTheStateOfAnotherNetworkAndChangesNothing) {
  const auto executor = make_executor(1);
  const planner::NetworkSpec spec{.layers = {{.outputs = 12, .inputs = 20, .density = 0.5},
                                             {.outputs = 6, .inputs = 12, .density = 0.5}},
                                  .batch = 8,
                                  .loss = codelets::Loss::SoftmaxCrossEntropy,
                                  .optimiser = {.rule = codelets::Adam{}}};
  const runtime::Twin twin(spec);
  NetworkRun run(twin, *executor);
  run.step(twin);
  const std::vector<float> before = run.network.weights(0).values;
  NetworkState none, longer = run.state, other = run.state;
  longer.weights.push_back(longer.weights[0]);
  other.weights[1].arrays[0].pop_back();
  for (NetworkState* const state : {&none, &longer, &other}) {
    EXPECT_NE(test::refusal([&] { run.network.run(twin.batch(), *state); }).find("first_state()"),
              std::string::npos);
    EXPECT_NE(test::refusal([&] { run.network.update(spec.optimiser, *state); }).find("another"),
              std::string::npos);
  }
  EXPECT_EQ(run.network.weights(0).values, before);
}

TEST(OnLayersOfThisComputer, EndsWithStepAndLayerWhenTheLossIsNotFinite) {
  const auto executor = make_executor(1);
  runtime::NetworkSpec spec{.layers = {{29, 37, {1, 1}, 0.3, true, {codelets::Activation::Relu}},
                                       {10, 29, {1, 1}, 0.5, true, {}}},
                            .batch = 22,
                            .loss = codelets::Loss::SoftmaxCrossEntropy,
                            .optimiser = {.rule = codelets::Sgd{1e30}}};
  const runtime::Twin twin(spec);
  NetworkRun run(twin, *executor);
  std::vector<float> before;
  for (int step = 1; step < 10; ++step) {
    before = run.network.state(0).bias;
    try {
      run.step(twin);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
      const std::string text = error.what();
      EXPECT_EQ(text.find("network: the loss of step " + std::to_string(step) + " is "), 0u)
          << text;
      EXPECT_NE(text.find(" in layer "), std::string::npos) << text;
      EXPECT_EQ(run.network.state(0).bias, before);
      return;
    }
  }
  FAIL() << "it went on";
}

TEST(RecomputeEverySecond, BeginsWithTheFirstLayerAndSparesTheLast) {
  NetworkSpec spec;
  spec.loss = codelets::Loss::MeanSquaredError;
  for (const std::size_t layers : {2, 5, 6}) {
    spec.layers.assign(layers, {.recompute = true});
    recompute_every_second(spec);
    for (std::size_t l = 0; l < layers; ++l)
      EXPECT_EQ(spec.layers[l].recompute,
                l == 0 || (l == 2 && layers > 3) || (l == 4 && layers > 5))
          << l << " of " << layers;
  }
}

}  // namespace
}  // namespace tessera::train
