#include "tessera/bench/planner/network_bars.hpp"

#include <array>

#include "tessera/base/random.hpp"
#include "tessera/bench/ratios.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/planner/plan_network.hpp"

namespace tessera::bench {
namespace {

constexpr int kNetworks = 40;

std::int64_t drawn_width(Random& random) {
  constexpr std::array<std::int64_t, 6> kWidths = {256, 512, 784, 1024, 1536, 2048};
  return kWidths[random.below(kWidths.size())];
}

// A training step with layers of widths and densities that users have.
planner::NetworkSpec drawn_network(Random& random, std::int64_t layers) {
  constexpr std::array<std::int64_t, 4> kBatches = {32, 64, 128, 256};
  constexpr std::array<double, 3> kDensities = {0.05, 0.1, 0.2};
  planner::NetworkSpec spec{.batch = kBatches[random.below(kBatches.size())],
                            .data_type = DataType::Half,
                            .loss = codelets::Loss::SoftmaxCrossEntropy,
                            .optimiser = {.rule = codelets::Adam{.learning_rate = 0.01}}};
  std::int64_t inputs = drawn_width(random);
  for (std::int64_t l = 0; l < layers; ++l) {
    const std::int64_t outputs = l + 1 == layers ? 10 : drawn_width(random);
    const bool is_last = l + 1 == layers;
    spec.layers.push_back(
        {.outputs = outputs,
         .inputs = inputs,
         .density = kDensities[random.below(kDensities.size())],
         .activation = {is_last ? codelets::Activation::None : codelets::Activation::Relu}});
    inputs = outputs;
  }
  return spec;
}

double ratio(Cycles joint, Cycles other) { return double(joint.value) / double(other.value); }

}  // namespace

std::vector<Bar> network_bars(std::uint64_t seed) {
  const device::Machine machine = device::machine_preset("gc200");
  Random random(seed);
  Ratios by_layer, alone, same_plans;
  for (int i = 0; i < kNetworks; ++i) {
    const auto plan =
        planner::plan_network(drawn_network(random, 2 + std::int64_t(random.below(5))), machine);
    by_layer.add(ratio(plan.cycles, plan.layer_by_layer));
    alone.add(ratio(plan.cycles, plan.standing_alone.value()));
    same_plans.add(ratio(plan.cycles, plan.cheapest_of_each));
  }
  const planner::NetworkSpec six = drawn_network(random, 6);
  const double seconds_of_six =
      seconds([&] { static_cast<void>(planner::plan_network(six, machine)); }, Clock::OwnThread);
  using enum Bar::Side;
  return {{"networks: joint cycles / cheapest plan of each layer, worst", by_layer.largest(),
           AtMost, 1},
          {"networks: joint cycles / cheapest plan of each layer, geometric mean", by_layer.mean(),
           AtMost, 0.95},
          {"networks: joint cycles / layers that stand alone, worst", alone.largest(), AtMost, 1},
          {"networks: joint cycles / layers that stand alone, geometric mean", alone.mean(), AtMost,
           0.95},
          {"networks: joint cycles / cheapest plans in one program, geometric mean",
           same_plans.mean(), AtMost, 1},
          {"networks: seconds to plan six layers", seconds_of_six, AtMost, 1}};
}

}  // namespace tessera::bench
