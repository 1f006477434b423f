#include "tessera/runtime/network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/planner/plan_network.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/tests/runtime/network_twin.hpp"

namespace tessera::runtime {
namespace {

using codelets::Activation;
using codelets::Loss;

device::Machine machine_of(std::int64_t tiles) {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = tiles;
  return machine;
}

planner::Options network_options() {
  planner::Options options;
  options.operand_placement = Placement::AtHome;
  options.per_pass_plans = false;
  options.constraints.use_dense = false;
  return options;
}

std::vector<planner::Plan> plans_of(const NetworkSpec& spec, const device::Machine& machine,
                                    const planner::Options& options = network_options()) {
  std::vector<planner::Plan> plans;
  for (const Problem& problem : problems_of(spec))
    plans.push_back(planner::plan_or_throw(problem, machine, options));
  return plans;
}

// Plans with two layouts for all layers that have a GradA. With `tight`, buckets have little room
// beyond the mean, so that blocks spill.
std::vector<planner::Plan> plans_with_two_layouts(const NetworkSpec& spec,
                                                  const device::Machine& machine, bool grad_w_there,
                                                  bool tight = false) {
  planner::Options options = network_options();
  if (tight) {
    options.meta_info_bucket_oversize_proportion = 0.15;
    options.bucket_confidence = 0;
  }
  std::vector<planner::Plan> plans = plans_of(spec, machine, options);
  for (std::size_t l = 1; l < plans.size(); ++l) {
    const auto [here, there] = planner::two_problems(problems_of(spec)[l], grad_w_there);
    plans[l] = planner::plan_or_throw(here, machine, options);
    plans[l].backward = {planner::plan_or_throw(there, machine, options)};
  }
  return plans;
}

// A network with three layers whose sizes no plan divides evenly.
NetworkSpec perceptron(Loss loss = Loss::SoftmaxCrossEntropy, BlockShape block = {1, 1}) {
  return {.layers = {{37, 29, block, 0.3, true, {Activation::Relu}},
                     {41, 37, block, 0.25, true, {Activation::Gelu}},
                     {10, 41, block, 0.5, true, {}}},
          .batch = 22,
          .loss = loss,
          .optimiser = {.rule = codelets::Adam{.learning_rate = 0.01}}};
}

void expect_parameters(const Network& network, const Twin& twin, double bound) {
  for (std::size_t l = 0; l < twin.spec.layers.size(); ++l) {
    const sparse::Csr<float> weights = network.weights(std::int64_t(l));
    double worst = 0;
    twin.for_each_value(l, [&](std::size_t i, std::int64_t, std::int64_t) {
      worst = std::max(worst, std::abs(double(weights.values[i]) - twin.values[l][i]));
    });
    EXPECT_LE(worst, bound) << "weights of layer " << l + 1;
    for (std::size_t r = 0; twin.spec.layers[l].bias && r < twin.biases[l].size(); ++r)
      ASSERT_NEAR(network.bias(std::int64_t(l))[r], twin.biases[l][r], bound) << "layer " << l + 1;
  }
}

// Ten steps of every optimiser stay close to those of plain loops. Adam divides by roots of squares
// that may be small, so the rounding of a gradient can move a weight by a part of the rate.
TEST(Network, TrainsAsPlainLoopsInDoublePrecisionDo) {
  const auto executor = make_executor(2);
  for (const codelets::Optimiser& optimiser : optimisers())
    for (const Loss loss : {Loss::SoftmaxCrossEntropy, Loss::MeanSquaredError}) {
      SCOPED_TRACE(std::string(name_of(optimiser)) + ", " + std::string(to_string(loss)));
      NetworkSpec spec = perceptron(loss);
      spec.optimiser = optimiser;
      const device::Machine machine = machine_of(24);
      Network network(spec, plans_of(spec, machine), machine, device::ExchangeMode::Share,
                      *executor);
      Twin twin(spec);
      twin.give(network);
      double first = 0, last = 0;
      for (int t = 1; t <= 10; ++t) {
        const NetworkCost cost = network.run(twin.batch());
        last = twin.step(t);
        if (t == 1) first = last;
        ASSERT_NEAR(network.loss(), last, 1e-4 * (1 + last)) << "step " << t;
        EXPECT_GT(cost.ledger.total(), Cycles(0));
      }
      EXPECT_LT(last, first);
      expect_parameters(network, twin, 2e-5 + 1e-5);
    }
}

TEST(Network, TrainsBlocksAndLayersWithoutBias) {
  const auto executor = make_executor(2);
  NetworkSpec spec = perceptron(Loss::MeanSquaredError, {4, 4});
  spec.layers[1].bias = false;
  spec.layers[2].bias = false;
  spec.optimiser = {.rule = codelets::Sgd{0.5}};
  const device::Machine machine = machine_of(30);
  Network network(spec, plans_of(spec, machine), machine, device::ExchangeMode::Share, *executor);
  Twin twin(spec);
  twin.give(network);
  for (int t = 1; t <= 3; ++t) {
    network.run(twin.batch());
    const double loss = twin.step(t);
    EXPECT_NEAR(network.loss(), loss, 1e-4 * (1 + loss));
  }
  expect_parameters(network, twin, 1e-4);
}

// GradA has a layout of its own, which may be the one that the optimiser updates.
TEST(Network, TrainsWithTwoLayoutsAsPlainLoopsDo) {
  const auto executor = make_executor(2);
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}})
    for (const bool grad_w_there : {false, true})
      for (const bool tight : {false, true}) {
        SCOPED_TRACE(testing::Message() << "block " << block.rows << ", GradW there "
                                        << grad_w_there << ", tight " << tight);
        NetworkSpec spec = perceptron(Loss::SoftmaxCrossEntropy, block);
        spec.layers[1].activation = {};
        spec.layers[1].bias = false;  // its gradient goes on without a derivative
        const device::Machine machine = machine_of(24);
        Network network(spec, plans_with_two_layouts(spec, machine, grad_w_there, tight), machine,
                        device::ExchangeMode::Isolate, *executor);
        Twin twin(spec);
        twin.give(network);
        for (int t = 1; t <= 4; ++t) {
          network.run(twin.batch());
          const double loss = twin.step(t);
          ASSERT_NEAR(network.loss(), loss, 1e-4 * (1 + loss)) << "step " << t;
        }
        expect_parameters(network, twin, 2e-5 + 1e-5);
      }
}

TEST(Network, ComputesOutputsWithoutALoss) {
  const auto executor = make_executor(2);
  for (const std::int64_t tiles : {1, 7, 60}) {
    NetworkSpec spec = perceptron();
    spec.loss.reset();
    const device::Machine machine = machine_of(tiles);
    Network network(spec, plans_of(spec, machine), machine, device::ExchangeMode::Isolate,
                    *executor);
    Twin twin(spec);
    twin.give(network);
    network.run(twin.batch());
    twin.forward();
    ASSERT_EQ(network.outputs().rows(), 10);
    for (std::int64_t r = 0; r < 10; ++r)
      for (std::int64_t c = 0; c < spec.batch; ++c)
        ASSERT_NEAR(network.outputs()(r, c), twin.results.back()[std::size_t(r)][std::size_t(c)],
                    1e-4)
            << tiles << " tiles";
  }
}

// Dense layers before, between and behind sparse ones.
NetworkSpec with_dense_layers(Loss loss = Loss::SoftmaxCrossEntropy) {
  NetworkSpec spec = perceptron(loss);
  for (const std::size_t l : {std::size_t{0}, std::size_t{2}}) {
    spec.layers[l].dense = true;
    spec.layers[l].density = 1;
  }
  return spec;
}

TEST(Network, TrainsDenseLayersAsPlainLoopsDo) {
  const auto executor = make_executor(2);
  for (const codelets::Optimiser& optimiser : optimisers())
    for (const std::int64_t tiles : {1, 24}) {
      SCOPED_TRACE(std::string(name_of(optimiser)) + " on " + std::to_string(tiles));
      NetworkSpec spec =
          with_dense_layers(tiles == 1 ? Loss::MeanSquaredError : Loss::SoftmaxCrossEntropy);
      // The gradient of a dense layer goes on without a derivative.
      if (states_of(optimiser) == 0) {
        spec.layers[1].dense = true;
        spec.layers[1].density = 1;
        spec.layers[1].bias = false;
        spec.layers[1].activation = {};
      }
      spec.optimiser = optimiser;
      const device::Machine machine = machine_of(tiles);
      Network network(spec, planner::plan_network(spec, machine).plans, machine,
                      device::ExchangeMode::Share, *executor);
      Twin twin(spec);
      twin.give(network);
      for (int t = 1; t <= 10; ++t) {
        network.run(twin.batch());
        const double loss = twin.step(t);
        ASSERT_NEAR(network.loss(), loss, 1e-4 * (1 + loss)) << "step " << t;
      }
      expect_parameters(network, twin, 2e-5 + 1e-5);
    }
}

TEST(Network, ComputesOutputsOfDenseLayersWithoutALoss) {
  const auto executor = make_executor(1);
  NetworkSpec spec = with_dense_layers();
  spec.loss.reset();
  const device::Machine machine = machine_of(24);
  Network network(spec, planner::plan_network(spec, machine).plans, machine,
                  device::ExchangeMode::Isolate, *executor);
  Twin twin(spec);
  twin.give(network);
  for (int run = 0; run < 2; ++run) {
    network.run(twin.batch());
    twin.forward();
    for (std::int64_t r = 0; r < 10; ++r)
      for (std::int64_t c = 0; c < spec.batch; ++c)
        ASSERT_NEAR(network.outputs()(r, c), twin.results.back()[std::size_t(r)][std::size_t(c)],
                    1e-4);
  }
  EXPECT_EQ(network.weights(0), twin.weights[0]);
}

// A dense layer keeps what its weights leave out as zeros, and trains them.
TEST(Network, StoresAllWeightsOfADenseLayer) {
  const auto executor = make_executor(1);
  const NetworkSpec spec = with_dense_layers();
  const device::Machine machine = machine_of(24);
  Network network(spec, planner::plan_network(spec, machine).plans, machine,
                  device::ExchangeMode::Share, *executor);
  const Twin twin(spec);
  twin.give(network);
  ASSERT_FALSE(network.set_weights(0, sparse::random_pattern(37, 29, {1, 1}, 0.1, 3)).has_value());
  EXPECT_EQ(network.weights(0).blocks(), 37 * 29);
  EXPECT_EQ(std::ranges::count(network.weights(0).values, 0.0f), 37 * 29 - 107);
  network.run(twin.batch());
  EXPECT_LT(std::ranges::count(network.weights(0).values, 0.0f), 37 * 29 - 107);
  EXPECT_THROW(static_cast<void>(network.set_weights(2, twin.weights[0])), Error);
}

// The parameters, losses and ledgers of three training steps.
struct Trained {
  std::vector<sparse::Csr<float>> weights;
  std::vector<float> biases, losses;
  std::vector<device::Ledger> ledgers;
  friend bool operator==(const Trained&, const Trained&) = default;
};

Trained trained(const NetworkSpec& spec, const std::vector<planner::Plan>& plans,
                device::ExchangeMode mode, int threads) {
  const auto executor = make_executor(threads);
  Network network(spec, plans, machine_of(24), mode, *executor);
  const Twin twin(spec);
  twin.give(network);
  Trained result;
  for (int t = 0; t < 3; ++t) {
    result.ledgers.push_back(network.run(twin.batch()).ledger);
    result.losses.push_back(network.loss());
  }
  for (std::size_t l = 0; l < spec.layers.size(); ++l) {
    result.weights.push_back(network.weights(std::int64_t(l)));
    const auto bias = network.bias(std::int64_t(l));
    result.biases.insert(result.biases.end(), bias.begin(), bias.end());
  }
  return result;
}

TEST(Network, HasTheSameBitsAndLedgerInBothModesAndOnAnyNumberOfThreads) {
  for (const DataType type : {DataType::Float, DataType::Half}) {
    NetworkSpec spec = perceptron();
    spec.data_type = type;
    for (const auto& plans :
         {plans_of(spec, machine_of(24)), plans_with_two_layouts(spec, machine_of(24), false),
          plans_with_two_layouts(spec, machine_of(24), true)}) {
      const Trained share = trained(spec, plans, device::ExchangeMode::Share, 1);
      EXPECT_EQ(share, trained(spec, plans, device::ExchangeMode::Isolate, 1)) << to_string(type);
      EXPECT_EQ(share, trained(spec, plans, device::ExchangeMode::Isolate, 3)) << to_string(type);
    }
  }
}

TEST(Network, HasTheSameBitsOfDenseLayersInBothModesAndOnAnyNumberOfThreads) {
  for (const DataType type : {DataType::Float, DataType::Half}) {
    NetworkSpec spec = with_dense_layers();
    spec.data_type = type;
    const auto plans = planner::plan_network(spec, machine_of(24)).plans;
    const Trained share = trained(spec, plans, device::ExchangeMode::Share, 1);
    EXPECT_EQ(share, trained(spec, plans, device::ExchangeMode::Isolate, 1)) << to_string(type);
    EXPECT_EQ(share, trained(spec, plans, device::ExchangeMode::Isolate, 3)) << to_string(type);
  }
}

// Computing results again takes cycles and changes no bit, for sparse layers in one layout or two,
// which may run GradW, and for dense ones.
TEST(Network, HasTheSameBitsIfLayersRecompute) {
  const auto expect_same = [](NetworkSpec spec, const std::vector<planner::Plan>& plans) {
    const Trained kept = trained(spec, plans, device::ExchangeMode::Share, 1);
    for (const std::size_t l : {std::size_t{0}, std::size_t{1}}) {
      NetworkSpec again = spec;
      again.layers[l].recompute = true;
      const Trained recomputed = trained(again, plans, device::ExchangeMode::Isolate, 2);
      EXPECT_EQ(kept.weights, recomputed.weights) << "layer " << l + 1;
      EXPECT_EQ(kept.biases, recomputed.biases) << "layer " << l + 1;
      EXPECT_EQ(kept.losses, recomputed.losses) << "layer " << l + 1;
      EXPECT_LT(kept.ledgers[0].total(), recomputed.ledgers[0].total());
      EXPECT_EQ(recomputed, trained(again, plans, device::ExchangeMode::Share, 1));
    }
  };
  const NetworkSpec spec = perceptron();
  const device::Machine machine = machine_of(24);
  expect_same(spec, plans_of(spec, machine));
  expect_same(spec, plans_with_two_layouts(spec, machine, false, /*tight=*/true));
  expect_same(spec, plans_with_two_layouts(spec, machine, true));
  expect_same(with_dense_layers(), planner::plan_network(with_dense_layers(), machine).plans);
}

// Homes of operands move data and change no bit.
TEST(Network, HasTheSameBitsWithHomesOfItsOwnForOperands) {
  const device::Machine machine = machine_of(24);
  const auto expect_same = [](NetworkSpec spec, const std::vector<planner::Plan>& plans) {
    const Trained left = trained(spec, plans, device::ExchangeMode::Share, 1);
    for (const Placement placement : {Placement::AtHome, Placement::EvenSpread}) {
      for (NetworkLayer& layer : spec.layers) layer.operands = placement;
      const Trained home = trained(spec, plans, device::ExchangeMode::Isolate, 2);
      EXPECT_EQ(left.weights, home.weights) << to_string(placement);
      EXPECT_EQ(left.biases, home.biases) << to_string(placement);
      EXPECT_EQ(left.losses, home.losses) << to_string(placement);
      EXPECT_LT(left.ledgers[0].total(), home.ledgers[0].total());
      EXPECT_EQ(home, trained(spec, plans, device::ExchangeMode::Share, 1));
    }
  };
  const NetworkSpec spec = perceptron();
  expect_same(spec, plans_of(spec, machine));
  expect_same(spec, plans_with_two_layouts(spec, machine, false));
  expect_same(spec, plans_with_two_layouts(spec, machine, true));
  expect_same(with_dense_layers(), planner::plan_network(with_dense_layers(), machine).plans);
}

TEST(Network, NamesAPartForEveryStepAndChargesThemAll) {
  const auto executor = make_executor(1);
  const NetworkSpec spec = perceptron();
  const device::Machine machine = machine_of(24);
  Network network(spec, plans_of(spec, machine), machine, device::ExchangeMode::Share, *executor);
  const Twin twin(spec);
  twin.give(network);
  const NetworkCost cost = network.run(twin.batch());
  ASSERT_EQ(cost.part_of.size(), cost.ledger.steps.size());
  ASSERT_EQ(network.parts().size(), network.program().scopes.size());
  Cycles sum;
  Bytes moved;
  std::vector<std::int64_t> count(12);
  for (std::size_t part = 0; part < network.parts().size(); ++part) {
    sum += cost.of(int(part));
    moved += cost.moved(int(part));
    if (cost.of(int(part)) > Cycles()) ++count[std::size_t(network.parts()[part].work)];
  }
  EXPECT_EQ(sum, cost.ledger.total());
  EXPECT_EQ(moved, cost.ledger.moved());
  // Only the gradient of the loss is handed over in an exchange of its own.
  // Parameters, Fwd, activate, hand over, loss, derivative, GradA, GradW, update, biases, re-home,
  // recompute.
  EXPECT_EQ(count, (std::vector<std::int64_t>{0, 3, 3, 1, 1, 3, 2, 3, 3, 1, 0, 0}));
}

TEST(Network, NamesLayerBufferAndStepIfATileIsTooFull) {
  const auto executor = make_executor(1);
  const NetworkSpec spec = perceptron();
  device::Machine machine = machine_of(24);
  const std::vector<planner::Plan> plans = plans_of(spec, machine);
  machine.tile_memory = Bytes(2000);
  try {
    Network network(spec, plans, machine, device::ExchangeMode::Share, *executor);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::LimitExceeded);
    const std::string text = error.what();
    EXPECT_NE(text.find("(layer "), std::string::npos) << text;
    EXPECT_NE(text.find("largest: layer "), std::string::npos) << text;
    EXPECT_NE(text.find("use more tiles"), std::string::npos) << text;
    EXPECT_NE(text.find("--recompute"), std::string::npos) << text;
  }
}

TEST(Network, RefusesWhatDoesNotFitTogether) {
  const auto executor = make_executor(1);
  const NetworkSpec spec = perceptron();
  const device::Machine machine = machine_of(24);
  const std::vector<planner::Plan> plans = plans_of(spec, machine);
  const auto make = [&](const NetworkSpec& s, const std::vector<planner::Plan>& p) {
    Network network(s, p, machine, device::ExchangeMode::Share, *executor);
  };
  NetworkSpec bad = spec;
  bad.layers[1].inputs = 36;
  EXPECT_THROW(make(bad, plans), Error);
  bad.layers.clear();
  EXPECT_THROW(make(bad, {}), Error);
  bad = spec;
  bad.layers[0].activation.cap = 0;
  EXPECT_THROW(make(bad, plans), Error);
  bad = spec;
  bad.optimiser = with_learning_rate(bad.optimiser, -1);
  EXPECT_THROW(make(bad, plans), Error);
  bad = spec;
  bad.layers[1].dense = true;  // with a density
  EXPECT_THROW(make(bad, plans), Error);
  bad.layers[1].density = 1;  // with a plan that has buckets
  EXPECT_THROW(make(bad, plans), Error);
  bad = spec;
  bad.layers[2].recompute = true;  // the last one
  EXPECT_THROW(make(bad, plans), Error);
  bad.layers[2].recompute = false;
  bad.layers[1].recompute = true;
  bad.loss.reset();
  EXPECT_THROW(make(bad, plans), Error);
  bad.loss = spec.loss;
  bad.layers[0].recompute = true;  // two in a row
  EXPECT_THROW(make(bad, plans), Error);
  bad = spec;
  bad.layers[0].recompute = true;
  bad.layers[1].operands = Placement::AtHome;  // of a result that is computed again
  EXPECT_THROW(make(bad, plans), Error);
  EXPECT_THROW(make(spec, {plans[0]}), Error);
  planner::Options spread = network_options();
  spread.operand_placement = Placement::EvenSpread;
  EXPECT_THROW(make(spec, plans_of(spec, machine, spread)), Error);

  Network network(spec, plans, machine, device::ExchangeMode::Share, *executor);
  Twin twin(spec);
  EXPECT_THROW(network.run(twin.batch()), Error);  // no weights yet
  EXPECT_THROW(static_cast<void>(network.set_weights(3, twin.weights[0])), Error);
  EXPECT_THROW(static_cast<void>(network.set_weights(1, twin.weights[0])), Error);
  EXPECT_THROW(network.set_bias(0, twin.bias[2]), Error);
  twin.give(network);
  twin.labels[3] = 10;
  EXPECT_THROW(network.run(twin.batch()), Error);
  twin.labels.pop_back();
  EXPECT_THROW(network.run(twin.batch()), Error);
}

TEST(Network, BeginsWithTheFirstStepOfTheOptimiserAfterNewWeights) {
  const auto executor = make_executor(1);
  NetworkSpec spec = perceptron();
  spec.optimiser = {.rule = codelets::Adam{}};
  const device::Machine machine = machine_of(24);
  const std::vector<planner::Plan> plans = plans_of(spec, machine);
  Network used(spec, plans, machine, device::ExchangeMode::Share, *executor);
  Network fresh(spec, plans, machine, device::ExchangeMode::Share, *executor);
  const Twin twin(spec);
  twin.give(used);
  for (int t = 0; t < 3; ++t) used.run(twin.batch());
  twin.give(used);
  twin.give(fresh);
  used.run(twin.batch());
  fresh.run(twin.batch());
  for (std::int64_t l = 0; l < std::ssize(spec.layers); ++l)
    EXPECT_EQ(used.weights(l), fresh.weights(l));
}

TEST(Network, KeepsItsParametersIfARunIsStopped) {
  const auto executor = make_executor(1);
  const NetworkSpec spec = perceptron();
  const device::Machine machine = machine_of(24);
  Network network(spec, plans_of(spec, machine), machine, device::ExchangeMode::Share, *executor);
  const Twin twin(spec);
  twin.give(network);
  std::stop_source stop;
  TilePass options;
  options.pass.stop = stop.get_token();
  options.pass.progress = [&](const Progress& progress) {
    if (progress.step == "update") stop.request_stop();
  };
  NetworkCost cost;
  EXPECT_FALSE(network.run(twin.batch(), options, cost));
  for (std::size_t l = 0; l < 3; ++l) EXPECT_EQ(network.weights(std::int64_t(l)), twin.weights[l]);
}

}  // namespace
}  // namespace tessera::runtime
