#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/plan_network.hpp"
#include "tessera/runtime/network.hpp"
#include "tessera/sparse/random.hpp"

// The planned cost of every kind of work of every layer against that of a run.
namespace tessera::runtime {
namespace {

using Work = std::pair<NetworkWork, std::int64_t>;  // of a layer

NetworkSpec training_step() {
  return {.layers = {{512, 256, {}, 0.1, true, {codelets::Activation::Relu}},
                     {512, 512, {}, 0.05, true, {codelets::Activation::Gelu}},
                     {64, 512, {}, 0.2, true, {}}},
          .batch = 128,
          .data_type = DataType::Half,
          .loss = codelets::Loss::SoftmaxCrossEntropy,
          .optimiser = {.rule = codelets::Adam{.learning_rate = 0.001}}};
}

// A network without a loss whose batch no plan cuts evenly.
NetworkSpec forward() {
  return {.layers = {{300, 200, {}, 0.2, true, {codelets::Activation::Relu}},
                     {250, 300, {}, 0.1, false, {}},
                     {400, 250, {}, 0.1, true, {codelets::Activation::Gelu}}},
          .batch = 61,
          .data_type = DataType::Float};
}

// A training step with dense layers beside sparse ones, and results that are computed again.
NetworkSpec dense_and_recomputed() {
  NetworkSpec spec = training_step();
  spec.layers[1].dense = true;
  spec.layers[1].density = 1;
  spec.layers[1].recompute = true;
  spec.layers.push_back({32, 64, {}, 1, true, {}, true});
  return spec;
}

std::map<Work, Cycles> ran(Network& network, const NetworkSpec& spec) {
  for (std::size_t l = 0; l < spec.layers.size(); ++l) {
    const NetworkLayer& layer = spec.layers[l];
    const Dims size = planner::problem_of(spec, std::int64_t(l)).size_in_blocks();
    const sparse::Csr<float> weights =
        sparse::random_pattern(size.x, size.y, layer.block, layer.density, 3 + l);
    EXPECT_FALSE(network.set_weights(std::int64_t(l), weights).has_value());
  }
  const Matrix<float> inputs = random_matrix<float>(spec.layers[0].inputs, spec.batch, 9);
  const std::vector<std::int32_t> labels(std::size_t(spec.batch), 1);
  const NetworkCost cost = network.run({inputs.view(), labels, {}});
  std::map<Work, Cycles> sums;
  for (std::size_t i = 0; i < network.parts().size(); ++i)
    sums[{network.parts()[i].work, network.parts()[i].layer}] += cost.of(int(i));
  return sums;
}

// Compares the planned cost of a network with that of a run.
void expect_planned(const NetworkSpec& spec, const device::Machine& machine) {
  const planner::NetworkPlan plan = planner::plan_network(spec, machine);
  const auto executor = make_executor(2);
  Network network(spec, plan.plans, machine, device::ExchangeMode::Share, *executor);
  const std::map<Work, Cycles> sums = ran(network, spec);
  std::map<Work, Cycles> planned;
  for (const planner::WorkCost& work : network.planned_work(plan))
    planned[{work.work, work.layer}] += work.cycles;
  Cycles total;
  for (const auto& [work, cycles] : sums) {
    total += cycles;
    if (cycles == Cycles()) continue;
    const double ratio = double(planned[work].value) / double(cycles.value);
    EXPECT_NEAR(ratio, 1, 0.1) << to_string(work.first) << " of layer " << work.second + 1
                               << ": planned " << planned[work].value << ", run " << cycles.value;
  }
  EXPECT_NEAR(double(plan.cycles.value) / double(total.value), 1, 0.1);
  EXPECT_LE(network.high_water(), machine.tile_memory);
  // The plan reserves at least the memory that the program needs, and at most twice as much.
  EXPECT_GE(plan.memory, network.high_water());
  EXPECT_LE(plan.memory.value, 2 * network.high_water().value);
}

// A training step or a computation of outputs with layers of every kind: sides that no plan divides
// evenly, densities that users have, blocks, dense layers, results that are computed again.
NetworkSpec drawn_network(std::uint64_t seed) {
  Random random(seed);
  const auto one_of = [&](auto... values) {
    const std::array all{values...};
    return all[random.below(all.size())];
  };
  NetworkSpec spec{.batch = one_of(24, 32, 61, 64, 100, 128),
                   .data_type = one_of(DataType::Half, DataType::Half, DataType::Float)};
  const bool trains = random.below(4) > 0;
  if (trains) spec.loss = codelets::Loss::SoftmaxCrossEntropy;
  spec.optimiser.rule = one_of(codelets::Rule(codelets::Adam{.learning_rate = 0.01}),
                               codelets::Rule(codelets::Sgd{}));
  const std::int64_t layers = 2 + std::int64_t(random.below(4));
  std::int64_t inputs = one_of(128, 200, 256, 384, 512);
  for (std::int64_t l = 0; l < layers; ++l) {
    const bool is_last = l + 1 == layers;
    NetworkLayer layer;
    layer.inputs = inputs;
    layer.outputs = is_last ? one_of(10, 64, 100) : one_of(128, 200, 256, 300, 512);
    layer.density = one_of(0.05, 0.1, 0.2);
    layer.dense = random.below(6) == 0;
    if (layer.dense) layer.density = 1;
    if (!layer.dense && random.below(5) == 0) layer.block = {4, 4};
    layer.bias = random.below(5) > 0;
    layer.activation.kind = is_last ? codelets::Activation::None
                                    : one_of(codelets::Activation::Relu, codelets::Activation::Gelu,
                                             codelets::Activation::None);
    layer.recompute = trains && !is_last && random.below(4) == 0 &&
                      (spec.layers.empty() || !spec.layers.back().recompute);
    if (random.below(5) == 0 && (spec.layers.empty() || !spec.layers.back().recompute))
      layer.operands = one_of(Placement::AtHome, Placement::EvenSpread);
    spec.layers.push_back(layer);
    inputs = layer.outputs;
  }
  return spec;
}

// The work of every kind of every layer is planned within 10 % of the run.
TEST(NetworkCost, IsPlannedWithinTenPercentForRandomNetworks) {
  device::Machine machine = device::machine_preset("gc200");
  // Most of these have a pass whose slowest tile takes more than 10 % longer, or shorter, than a
  // plan can expect that knows densities only. Seeds 1 to 150 pass.
  for (const int seed : {3, 11, 13, 24, 29, 36, 40, 44, 54, 55}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    machine.tiles = 40 + 17 * (seed % 9);
    expect_planned(drawn_network(std::uint64_t(seed)), machine);
  }
}

TEST(NetworkCost, IsPlannedWithinTenPercentForEveryWorkOfEveryLayer) {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 160;
  expect_planned(training_step(), machine);
  expect_planned(dense_and_recomputed(), machine);
  for (const char* name : {"gc200", "mk1"}) {
    SCOPED_TRACE(name);
    machine = device::machine_preset(name);
    machine.tiles = 90;
    expect_planned(forward(), machine);
  }
}

// Activations outweigh the weights of these layers, so a network that computes every second result
// again needs less memory, both as planned and as run.
TEST(NetworkCost, NeedsLessMemoryIfLayersRecompute) {
  NetworkSpec spec{
      .layers = std::vector<NetworkLayer>(7, {64, 64, {}, 0.1, true, {codelets::Activation::Gelu}}),
      .batch = 512,
      .loss = codelets::Loss::MeanSquaredError};
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 16;
  const auto executor = make_executor(1);
  const auto memory = [&] {
    const planner::NetworkPlan plan = planner::plan_network(spec, machine);
    const Network network(spec, plan.plans, machine, device::ExchangeMode::Share, *executor);
    EXPECT_GE(plan.memory, network.high_water());
    return std::pair(plan.memory, network.high_water());
  };
  const auto [planned, needed] = memory();
  for (const std::size_t l : {std::size_t{1}, std::size_t{3}, std::size_t{5}})
    spec.layers[l].recompute = true;
  const auto [planned_again, needed_again] = memory();
  EXPECT_LT(planned_again.value, 0.9 * double(planned.value));
  EXPECT_LT(needed_again.value, 0.9 * double(needed.value));
}

// A plan from a file may have passes without terms.
TEST(NetworkCost, CountsNoCyclesForATermThatAPlanDoesNotHave) {
  const NetworkSpec spec{.layers = {{24, 32, {}, 0.2}, {16, 24, {}, 0.2}},
                         .batch = 8,
                         .loss = codelets::Loss::MeanSquaredError};
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 8;
  const auto executor = make_executor(1);
  planner::NetworkPlan plan = planner::plan_network(spec, machine);
  for (planner::Plan& layer : plan.plans)
    for (planner::PassCost& pass : layer.cost.passes) pass.terms.clear();
  Network network(spec, plan.plans, machine, device::ExchangeMode::Share, *executor);
  for (const std::int64_t l : {0, 1}) {
    const Dims size = problem_of(spec, l).size;
    EXPECT_FALSE(network.set_weights(l, sparse::random_pattern(size.x, size.y, {}, 0.2, 3)));
  }
  EXPECT_FALSE(network.planned_work(plan).empty());
}

}  // namespace
}  // namespace tessera::runtime
