#include <gtest/gtest.h>

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
          .update = {.kind = codelets::Update::Adam, .rate = 0.001}};
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
    EXPECT_FALSE(
        network
            .set_weights(std::int64_t(l), sparse::random_pattern(layer.outputs, layer.inputs,
                                                                 layer.block, layer.density, 3 + l))
            .has_value());
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
  for (const planner::WorkCost& work : plan.work) planned[{work.work, work.layer}] += work.cycles;
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

}  // namespace
}  // namespace tessera::runtime
