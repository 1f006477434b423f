#include "tessera/planner/plan_network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/planner/internal/priced_layer.hpp"
#include "tessera/planner/network_json.hpp"

namespace tessera::planner {
namespace {

device::Machine machine_of(std::int64_t tiles) {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = tiles;
  return machine;
}

// A random network of 2 to 4 layers, half of them training steps.
NetworkSpec drawn_network(Random& random) {
  NetworkSpec spec{.batch = 1 + std::int64_t(random.below(64)),
                   .optimiser = {.rule = codelets::Adam{.learning_rate = 0.01}}};
  if (random.below(2) == 0) spec.loss = codelets::Loss::SoftmaxCrossEntropy;
  std::int64_t width = 16 + std::int64_t(random.below(200));
  const std::int64_t layers = 2 + std::int64_t(random.below(3));
  for (std::int64_t l = 0; l < layers; ++l) {
    const std::int64_t next = 16 + std::int64_t(random.below(200));
    spec.layers.push_back({.outputs = next,
                           .inputs = width,
                           .density = 0.05 + 0.3 * random.unit(),
                           .bias = random.below(2) == 0,
                           .activation = {random.below(2) == 0 ? codelets::Activation::Relu
                                                               : codelets::Activation::None}});
    width = next;
  }
  return spec;
}

std::vector<LayerCandidates> candidates_of(const NetworkSpec& spec, const device::Machine& machine,
                                           std::size_t most) {
  std::vector<LayerCandidates> candidates;
  for (const Problem& problem : problems_of(spec))
    candidates.push_back(layer_candidates(problem, machine, {}, most));
  return candidates;
}

// The costs of all candidates, [layer][candidate], and of all links to the next layer,
// [layer][candidate][candidate of the next layer].
struct Costs {
  std::vector<std::vector<PricedLayer>> layers;
  std::vector<std::vector<Cycles>> own;
  std::vector<std::vector<std::vector<Cycles>>> links;

  Costs(const NetworkSpec& spec, const std::vector<LayerCandidates>& candidates,
        const device::Machine& machine)
      : layers(candidates.size()), own(candidates.size()), links(candidates.size()) {
    for (std::size_t l = 0; l < candidates.size(); ++l)
      for (const Plan& plan : candidates[l])
        layers[l].emplace_back(spec, std::int64_t(l), plan, machine);
    for (std::size_t l = 0; l < layers.size(); ++l)
      for (const PricedLayer& layer : layers[l]) {
        own[l].push_back(sum_of(layer.own_work()));
        links[l].emplace_back();
        if (l + 1 == layers.size()) continue;
        for (const PricedLayer& next : layers[l + 1])
          links[l].back().push_back(sum_of(layer.link_work(next)));
      }
  }
};

// The fewest cycles of any choice that fits, by looking at all of them.
std::optional<Cycles> fewest_cycles(const Costs& costs, const device::Machine& machine) {
  std::optional<Cycles> best;
  std::vector<std::size_t> at(costs.layers.size());
  while (true) {
    Cycles cycles;
    Bytes resident, temp;
    for (std::size_t l = 0; l < at.size(); ++l) {
      const PricedLayer& layer = costs.layers[l][at[l]];
      cycles += costs.own[l][at[l]];
      if (l + 1 < at.size()) cycles += costs.links[l][at[l]][at[l + 1]];
      resident += layer.resident();
      temp = std::max(temp, layer.temp());
    }
    if (resident + temp <= machine.tile_memory && (!best || cycles < *best)) best = cycles;
    std::size_t l = 0;
    while (l < at.size() && ++at[l] == costs.layers[l].size()) at[l++] = 0;
    if (l == at.size()) return best;
  }
}

// One tile has all of every operand: results of two layers, or the slices of both operands of
// GradW.
TEST(PricedLayer, KeepsOperandsAndResultsBesideAPlanOfOneTile) {
  const device::Machine machine = machine_of(1);
  for (const bool trains : {false, true}) {
    NetworkSpec spec{.layers = {{.outputs = 16, .inputs = 24, .density = 0.3}}, .batch = 8};
    if (trains) spec.loss = codelets::Loss::SoftmaxCrossEntropy;
    const auto candidates = candidates_of(spec, machine, 1);
    const Plan& plan = candidates[0].at(0);
    const std::int64_t result = 16 * 8, s = 24 * 8, elements = s + (trains ? result : 2 * result);
    EXPECT_EQ(PricedLayer(spec, 0, plan, machine).temp() - plan.cost.temp, Bytes(4 * elements));
  }
}

TEST(ChoosePlans, FindsTheFewestCyclesOfAllChoicesThatFit) {
  Random random(11);
  int binding = 0;
  for (int i = 0; i < 12; ++i) {
    SCOPED_TRACE(i);
    const NetworkSpec spec = drawn_network(random);
    device::Machine machine = machine_of(4 + std::int64_t(random.below(60)));
    const std::vector<LayerCandidates> candidates = candidates_of(spec, machine, 5);
    const NetworkPlan free = choose_plans(spec, candidates, machine);
    const Costs costs(spec, candidates, machine);
    EXPECT_EQ(free.cycles, fewest_cycles(costs, machine));
    // Less and less memory, until nothing fits.
    for (std::int64_t bytes = free.memory.value - 1; bytes > 0; bytes -= bytes / 20 + 1) {
      machine.tile_memory = Bytes(bytes);
      const std::optional<Cycles> fewest = fewest_cycles(costs, machine);
      if (!fewest) {
        EXPECT_THROW(choose_plans(spec, candidates, machine), Error);
        break;
      }
      const NetworkPlan plan = choose_plans(spec, candidates, machine);
      EXPECT_EQ(plan.cycles, *fewest);
      EXPECT_LE(plan.memory, machine.tile_memory);
      binding += plan.cycles > free.cycles;
    }
  }
  EXPECT_GT(binding, 3);  // memory has changed a choice
}

TEST(LayerCandidates, HoldSeveralPairsOfTwoLayoutsBesideThoseWithOne) {
  const Problem problem{.size = {1, 512, 1024, 64}, .density = 0.1, .grad_a = true, .grad_w = true};
  const LayerCandidates candidates =
      layer_candidates(problem, machine_of(368), {}, kCandidatesPerLayer);
  EXPECT_LE(candidates.size(), kCandidatesPerLayer);
  const auto pairs =
      std::ranges::count_if(candidates, [](const Plan& plan) { return !plan.backward.empty(); });
  EXPECT_GE(pairs, 3);
  EXPECT_LT(pairs, std::ssize(candidates));
  for (const Plan& plan : candidates) {
    EXPECT_GE(plan.cost.cycles, candidates.front().cost.cycles);
    EXPECT_EQ(std::ranges::count(candidates, plan), 1);
  }
}

TEST(PlanNetwork, IsNeverDearerThanLayerByLayer) {
  Random random(12);
  for (int i = 0; i < 6; ++i) {
    const NetworkSpec spec = drawn_network(random);
    const NetworkPlan plan = plan_network(spec, machine_of(100));
    EXPECT_LE(plan.cycles, plan.layer_by_layer);
    EXPECT_LE(plan.cycles, plan.cheapest_of_each);
    EXPECT_TRUE(plan.layer_by_layer_fits);
    EXPECT_GE(plan.gain(), 0);
    Cycles sum;
    for (const WorkCost& work : plan.work) sum += work.cycles;
    EXPECT_EQ(sum, plan.cycles);
    EXPECT_NE(to_string(plan).find("% fewer"), std::string::npos);
    ASSERT_TRUE(plan.standing_alone.has_value());
    EXPECT_GT(*plan.standing_alone, Cycles());
  }
}

TEST(PlanNetwork, NamesTheLayerThatHasNoPlanAndTheOneThatNeedsMost) {
  NetworkSpec spec{.layers = {{256, 64, {}, 0.1}, {512, 256, {}, 0.1}}, .batch = 16};
  device::Machine machine = machine_of(4);
  machine.tile_memory = Bytes(2048);
  try {
    plan_network(spec, machine);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("layer "), std::string::npos) << error.what();
  }
  const std::vector<LayerCandidates> candidates = candidates_of(spec, machine_of(4), 4);
  try {
    choose_plans(spec, candidates, machine);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::NoSolution);
    EXPECT_NE(std::string(error.what()).find("layer 2 needs most"), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(plan_network({}, machine), Error);
}

// Equal layers share the costs of their candidates, so hundreds of them are planned in seconds;
// each layer has its own work.
TEST(PlanNetwork, PlansHundredsOfEqualLayers) {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 32;
  const NetworkSpec spec{.layers = std::vector<NetworkLayer>(300, {64, 64, {}, 0.1, true, {}}),
                         .batch = 16};
  const NetworkPlan plan = plan_network(spec, machine);
  ASSERT_EQ(plan.plans.size(), 300u);
  EXPECT_EQ(sum_of(plan.work), plan.cycles);
  std::vector<int> forward(300);
  for (const WorkCost& work : plan.work)
    if (work.work == NetworkWork::Fwd) ++forward[std::size_t(work.layer)];
  EXPECT_EQ(forward, std::vector<int>(300, 1));
}

TEST(NetworkFile, IsReadAsItWasWritten) {
  using codelets::Activation;
  NetworkSpec spec{
      .layers = {{.outputs = 30,
                  .inputs = 20,
                  .block = {4, 4},
                  .density = 0.3,
                  .activation = {Activation::Relu, 6},
                  .recompute = true},
                 {.outputs = 8,
                  .inputs = 30,
                  .bias = false,
                  .activation = {Activation::Gelu},
                  .dense = true},
                 {.outputs = 3, .inputs = 8, .density = 1, .operands = Placement::EvenSpread}},
      .batch = 17,
      .loss = codelets::Loss::MeanSquaredError};
  for (const codelets::Rule& rule :
       {codelets::Rule(codelets::Sgd{0.1, 0.5}), codelets::Rule(codelets::AdamW{}),
        codelets::Rule(codelets::AdaGrad{}), codelets::Rule(codelets::TorchSgd{})}) {
    spec.optimiser = {.rule = rule, .rescale = 0.5, .clip = 2};
    EXPECT_EQ(parse_network(to_json(spec), "text").spec, spec) << to_json(spec);
  }
  spec.optimiser = {};
  spec.loss.reset();
  spec.layers[0].recompute = false;
  spec.layers[0].block = {4, 2};
  EXPECT_EQ(parse_network(to_json(spec), "text"), (NetworkFile{spec, {"", "", ""}}));
}

}  // namespace
}  // namespace tessera::planner
