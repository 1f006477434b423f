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
#include "tessera/planner/planner.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::runtime {
namespace {

using codelets::Activation;
using codelets::Loss;
using codelets::Update;

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

// A network with three layers whose sizes no plan divides evenly.
NetworkSpec perceptron(Loss loss = Loss::SoftmaxCrossEntropy, BlockShape block = {1, 1}) {
  return {.layers = {{37, 29, block, 0.3, true, {Activation::Relu}},
                     {41, 37, block, 0.25, true, {Activation::Gelu}},
                     {10, 41, block, 0.5, true, {}}},
          .batch = 22,
          .loss = loss,
          .update = {.kind = Update::Adam, .rate = 0.01}};
}

// The data of a network and the same network in plain loops, in double precision.
struct Twin {
  explicit Twin(const NetworkSpec& s, std::uint64_t seed = 5) : spec(s) {
    for (std::size_t l = 0; l < spec.layers.size(); ++l) {
      const NetworkLayer& layer = spec.layers[l];
      const Dims size{1, layer.outputs, layer.inputs, 1};
      const Dims padded = Problem{.size = size, .block = layer.block}.size_in_blocks();
      weights.push_back(
          sparse::random_pattern(padded.x, padded.y, layer.block, layer.density, seed + l));
      Random random(seed + 100 + l);
      for (float& v : weights.back().values)
        v = float((2 * random.unit() - 1) / std::sqrt(layer.density * double(layer.inputs)));
      bias.emplace_back();
      for (std::int64_t i = 0; i < layer.outputs; ++i)
        bias.back().push_back(layer.bias ? float(0.2 * random.unit() - 0.1) : 0.0f);
      for (int s2 = 0; s2 < 2; ++s2) {
        weight_states[s2].emplace_back(weights.back().values.size());
        bias_states[s2].emplace_back(bias.back().size());
      }
      values.emplace_back(weights.back().values.begin(), weights.back().values.end());
      biases.emplace_back(bias.back().begin(), bias.back().end());
    }
    inputs = random_matrix<float>(spec.layers.front().inputs, spec.batch, seed + 7);
    targets = random_matrix<float>(spec.layers.back().outputs, spec.batch, seed + 8);
    Random random(seed + 9);
    for (std::int64_t i = 0; i < spec.batch; ++i)
      labels.push_back(std::int32_t(random.below(std::uint64_t(spec.layers.back().outputs))));
  }

  NetworkBatch batch() const { return {inputs.view(), labels, targets.view()}; }

  void give(Network& network) const {
    for (std::size_t l = 0; l < spec.layers.size(); ++l) {
      ASSERT_FALSE(network.set_weights(std::int64_t(l), weights[l]).has_value());
      if (spec.layers[l].bias) network.set_bias(std::int64_t(l), bias[l]);
    }
  }

  static double act(const codelets::ActivationRule& rule, double v) {
    if (rule.kind == Activation::Relu) return std::min(std::max(v, 0.0), double(rule.cap));
    if (rule.kind == Activation::None) return v;
    return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  }
  static double slope(const codelets::ActivationRule& rule, double v) {
    if (rule.kind == Activation::None) return 1;
    if (rule.kind == Activation::Relu) return v > 0 && v < rule.cap ? 1 : 0;
    return (act(rule, v + 1e-6) - act(rule, v - 1e-6)) / 2e-6;
  }

  // Calls visit(position, row, column) for each stored value inside the layer's size.
  template <class Visit>
  void for_each_value(std::size_t l, Visit&& visit) const {
    const sparse::Csr<float>& m = weights[l];
    std::size_t position = 0;
    for (std::int64_t r = 0; r < m.block_rows(); ++r)
      for (std::int64_t i = m.row_begin[std::size_t(r)]; i < m.row_begin[std::size_t(r) + 1]; ++i)
        for (std::int64_t a = 0; a < m.block.rows; ++a)
          for (std::int64_t b = 0; b < m.block.cols; ++b, ++position) {
            const std::int64_t x = r * m.block.rows + a;
            const std::int64_t y = m.col[std::size_t(i)] * m.block.cols + b;
            if (x < spec.layers[l].outputs && y < spec.layers[l].inputs) visit(position, x, y);
          }
  }

  using Tensor = std::vector<std::vector<double>>;  // [row][column]
  std::vector<Tensor> sums, results;                // by layer; results[0] is the input

  void forward() {
    const auto z = std::size_t(spec.batch);
    sums.clear();
    results.assign(1, Tensor(std::size_t(inputs.rows()), std::vector<double>(z)));
    for (std::int64_t r = 0; r < inputs.rows(); ++r)
      for (std::size_t c = 0; c < z; ++c)
        results[0][std::size_t(r)][c] = double(inputs(r, std::int64_t(c)));
    for (std::size_t l = 0; l < spec.layers.size(); ++l) {
      Tensor sum(std::size_t(spec.layers[l].outputs), std::vector<double>(z));
      for (std::size_t r = 0; r < sum.size(); ++r)
        for (double& v : sum[r]) v = biases[l][r];
      for_each_value(l, [&](std::size_t i, std::int64_t x, std::int64_t y) {
        for (std::size_t c = 0; c < z; ++c)
          sum[std::size_t(x)][c] += values[l][i] * results[l][std::size_t(y)][c];
      });
      Tensor result = sum;
      for (auto& row : result)
        for (double& v : row) v = act(spec.layers[l].activation, v);
      sums.push_back(std::move(sum));
      results.push_back(std::move(result));
    }
  }

  // Replaces the outputs by their gradient and returns the loss.
  double take_loss(Tensor& outputs) const {
    double loss = 0;
    const double count = double(spec.batch);
    for (std::size_t c = 0; c < std::size_t(spec.batch); ++c) {
      double sum = 0;
      for (const auto& row : outputs) sum += std::exp(row[c]);
      for (std::size_t r = 0; r < outputs.size(); ++r) {
        double& v = outputs[r][c];
        if (spec.loss == Loss::SoftmaxCrossEntropy) {
          const bool is_label = std::int32_t(r) == labels[c];
          if (is_label) loss += (std::log(sum) - v) / count;
          v = (std::exp(v) / sum - (is_label ? 1 : 0)) / count;
        } else {
          const double all = count * double(outputs.size());
          const double off = v - double(targets(std::int64_t(r), std::int64_t(c)));
          loss += off * off / all;
          v = 2 * off / all;
        }
      }
    }
    return loss;
  }

  static void update(const codelets::UpdateRule& rule, int t, double g, double& w, double& m,
                     double& v) {
    switch (rule.kind) {
      case Update::Sgd:
        w -= rule.rate * g;
        break;
      case Update::Momentum:
        w += m = rule.momentum * m - rule.rate * g;
        break;
      case Update::AdaGrad:
        m += g * g;
        w -= rule.rate * g / (std::sqrt(m) + rule.epsilon);
        break;
      case Update::Adam:
        m = rule.beta1 * m + (1 - rule.beta1) * g;
        v = rule.beta2 * v + (1 - rule.beta2) * g * g;
        w -= rule.rate * std::sqrt(1 - std::pow(rule.beta2, t)) / (1 - std::pow(rule.beta1, t)) *
             m / (std::sqrt(v) + rule.epsilon);
    }
  }

  // One training step; returns the loss before it.
  double step(int t) {
    forward();
    Tensor gradient = results.back();
    const double loss = take_loss(gradient);
    for (std::size_t l = spec.layers.size(); l-- > 0;) {
      for (std::size_t r = 0; r < gradient.size(); ++r)
        for (std::size_t c = 0; c < gradient[r].size(); ++c)
          gradient[r][c] *= slope(spec.layers[l].activation, sums[l][r][c]);
      Tensor below(results[l].size(), std::vector<double>(std::size_t(spec.batch)));
      std::vector<double> of_values(values[l].size());
      for_each_value(l, [&](std::size_t i, std::int64_t x, std::int64_t y) {
        for (std::size_t c = 0; c < std::size_t(spec.batch); ++c) {
          below[std::size_t(y)][c] += values[l][i] * gradient[std::size_t(x)][c];
          of_values[i] += gradient[std::size_t(x)][c] * results[l][std::size_t(y)][c];
        }
      });
      for (std::size_t i = 0; i < values[l].size(); ++i)
        update(spec.update, t, of_values[i], values[l][i], weight_states[0][l][i],
               weight_states[1][l][i]);
      for (std::size_t r = 0; spec.layers[l].bias && r < gradient.size(); ++r) {
        double sum = 0;
        for (const double g : gradient[r]) sum += g;
        update(spec.update, t, sum, biases[l][r], bias_states[0][l][r], bias_states[1][l][r]);
      }
      gradient = std::move(below);
    }
    return loss;
  }

  NetworkSpec spec;
  std::vector<sparse::Csr<float>> weights;
  std::vector<std::vector<float>> bias;
  std::vector<std::vector<double>> values, biases;
  std::vector<std::vector<double>> weight_states[2], bias_states[2];
  Matrix<float> inputs, targets;
  std::vector<std::int32_t> labels;
};

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
  for (const Update kind : {Update::Sgd, Update::Momentum, Update::AdaGrad, Update::Adam})
    for (const Loss loss : {Loss::SoftmaxCrossEntropy, Loss::MeanSquaredError}) {
      SCOPED_TRACE(std::string(to_string(kind)) + ", " + std::string(to_string(loss)));
      NetworkSpec spec = perceptron(loss);
      spec.update.kind = kind;
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
      expect_parameters(network, twin, 2e-3 * spec.update.rate + 1e-5);
    }
}

TEST(Network, TrainsBlocksAndLayersWithoutBias) {
  const auto executor = make_executor(2);
  NetworkSpec spec = perceptron(Loss::MeanSquaredError, {4, 4});
  spec.layers[1].bias = false;
  spec.layers[2].bias = false;
  spec.update = {.kind = Update::Sgd, .rate = 0.5};
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

// The parameters, losses and ledgers of three training steps.
struct Trained {
  std::vector<sparse::Csr<float>> weights;
  std::vector<float> biases, losses;
  std::vector<device::Ledger> ledgers;
  friend bool operator==(const Trained&, const Trained&) = default;
};

Trained trained(const NetworkSpec& spec, device::ExchangeMode mode, int threads) {
  const auto executor = make_executor(threads);
  const device::Machine machine = machine_of(24);
  Network network(spec, plans_of(spec, machine), machine, mode, *executor);
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
    const Trained share = trained(spec, device::ExchangeMode::Share, 1);
    EXPECT_EQ(share, trained(spec, device::ExchangeMode::Isolate, 1)) << to_string(type);
    EXPECT_EQ(share, trained(spec, device::ExchangeMode::Isolate, 3)) << to_string(type);
  }
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
  std::vector<std::int64_t> count(9);
  for (std::size_t part = 0; part < network.parts().size(); ++part) {
    sum += cost.of(int(part));
    if (cost.of(int(part)) > Cycles()) ++count[std::size_t(network.parts()[part].work)];
  }
  EXPECT_EQ(sum, cost.ledger.total());
  // An exchange in which no data change tiles costs nothing.
  std::int64_t& hand_overs = count[std::size_t(NetworkWork::HandOver)];
  EXPECT_GE(hand_overs, 6);
  EXPECT_LE(hand_overs, 2 + 6);
  hand_overs = 0;
  // Parameters, Fwd, activate, hand over, loss, derivative, GradA, GradW, update.
  EXPECT_EQ(count, (std::vector<std::int64_t>{0, 3, 3, 0, 1, 3, 2, 3, 3}));
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
  bad.update.rate = -1;
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
  spec.update.kind = Update::Adam;
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
  RunOptions options{.stop = stop.get_token()};
  options.progress = [&](const Progress& progress) {
    if (progress.step == "update") stop.request_stop();
  };
  NetworkCost cost;
  EXPECT_FALSE(network.run(twin.batch(), options, cost));
  for (std::size_t l = 0; l < 3; ++l) EXPECT_EQ(network.weights(std::int64_t(l)), twin.weights[l]);
}

}  // namespace
}  // namespace tessera::runtime
