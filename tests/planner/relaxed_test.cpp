#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/planner/plan_network.hpp"
#include "tessera/planner/planner.hpp"

// A request with one constraint fewer has all plans of the other one, so its plan costs no more.
namespace tessera::planner {
namespace {

struct Asked {
  Problem problem;
  device::Machine machine = device::machine_preset("gc200");
  Options options;
};

// Small machines with little memory, on which several kinds of plans cost about the same.
Asked draw(Random& random) {
  const BlockShape blocks[] = {{1, 1}, {4, 4}, {8, 8}, {4, 8}, {16, 16}};
  const std::int64_t tiles[] = {4, 8, 12, 32, 96};
  Asked asked;
  const bool is_mk1 = random.below(2) == 0;
  if (is_mk1) asked.machine = device::machine_preset("mk1");
  asked.machine.tiles = tiles[random.below(5)];
  asked.machine.tile_memory = Bytes(std::int64_t{16384} << random.below(4));
  asked.problem = {
      .size = {1, 16 * (1 + random.below(16)), 16 * (1 + random.below(16)), 1 + random.below(40)},
      .block = blocks[random.below(5)],
      .density = 0.02 + 0.5 * random.unit() * random.unit(),
      .data_type = random.below(2) == 0 ? DataType::Half : DataType::Float,
      .grad_a = random.below(4) != 0,
      .grad_w = random.below(4) != 0};
  return asked;
}

// Adds constraints at random. useDense true asks for another product, whose other constraints can
// be dropped.
void constrain(Random& random, Options& options) {
  PlanConstraints& pins = options.constraints;
  const auto is_drawn = [&](std::int64_t one_in) { return random.below(one_in) == 0; };
  if (is_drawn(2)) pins.use_dense = is_drawn(3);
  if (is_drawn(3)) pins.grad_w_exchange_buckets = is_drawn(2);
  if (is_drawn(6)) pins.z = 1 + random.below(2);
  if (is_drawn(6)) pins.x = 1;
  if (is_drawn(4)) options.per_pass_plans = false;
  if (is_drawn(4)) options.enable_structured_rearrangements = false;
  if (is_drawn(6)) options.shared_buckets = is_drawn(2);
}

struct Relaxation {
  std::string name;
  Options options;
};

// Returns the options without one of their constraints each.
std::vector<Relaxation> relaxations(const Options& options) {
  std::vector<Relaxation> all;
  const auto without = [&](const char* name, auto&& change) {
    Options relaxed = options;
    change(relaxed);
    if (!(relaxed == options)) all.push_back({name, relaxed});
  };
  without("useDense", [](Options& o) { o.constraints.use_dense.reset(); });
  without("exchange", [](Options& o) { o.constraints.grad_w_exchange_buckets.reset(); });
  without("x", [](Options& o) { o.constraints.x.reset(); });
  without("z", [](Options& o) { o.constraints.z.reset(); });
  without("perPassPlans", [](Options& o) { o.per_pass_plans = true; });
  without("rearrangements", [](Options& o) { o.enable_structured_rearrangements = true; });
  without("sharedBuckets", [](Options& o) { o.shared_buckets.reset(); });
  return all;
}

void expect_no_dearer(const Asked& asked, int number) {
  const PlanResult kept = plan(asked.problem, asked.machine, asked.options);
  if (!kept.has_plan) return;
  for (const Relaxation& relaxation : relaxations(asked.options)) {
    const PlanResult relaxed = plan(asked.problem, asked.machine, relaxation.options);
    ASSERT_TRUE(relaxed.has_plan) << "request " << number << " without " << relaxation.name;
    EXPECT_LE(relaxed.plan.cost.cycles, kept.plan.cost.cycles)
        << "request " << number << " without " << relaxation.name << ": "
        << to_string(asked.problem) << " on " << asked.machine.tiles << " tiles";
  }
}

TEST(RelaxedRequests, CostNoMoreThanWithOneMoreConstraint) {
  Random random(14);
  for (int i = 0; i < 250; ++i) {
    Asked asked = draw(random);
    constrain(random, asked.options);
    try {
      expect_no_dearer(asked, i);
    } catch (const Error& error) {  // a pinned count that no partition has
      ASSERT_EQ(error.code(), ErrorCode::InvalidArgument) << error.what();
    }
  }
}

// Large blocks took the places of sparse plans in the list of those whose layouts are paired.
TEST(RelaxedRequests, CostNoMoreIfDensePlansAreAllowedBesideTwoLayouts) {
  Asked asked;
  asked.machine = device::machine_preset("mk1");
  asked.machine.tiles = 8;
  asked.machine.tile_memory = Bytes(16384);
  asked.problem = {.size = {1, 64, 128, 1},
                   .block = {4, 4},
                   .density = 0.3,
                   .data_type = DataType::Float,
                   .grad_a = true,
                   .grad_w = true};
  const Cycles open = plan_or_throw(asked.problem, asked.machine).cost.cycles;
  EXPECT_LE(open, plan_or_throw(asked.problem, asked.machine, sparse_options()).cost.cycles);
}

// A network of two or three such layers, half of them training steps.
NetworkSpec draw_network(Random& random) {
  const BlockShape blocks[] = {{1, 1}, {4, 4}, {8, 8}, {16, 16}};
  NetworkSpec spec{.batch = 1 + std::int64_t(random.below(40)),
                   .optimiser = {.rule = codelets::Sgd{0.01}}};
  if (random.below(2) == 0) spec.loss = codelets::Loss::SoftmaxCrossEntropy;
  std::int64_t width = 16 * (1 + random.below(12));
  for (std::int64_t layers = 2 + random.below(2); layers > 0; --layers) {
    const std::int64_t next = 16 * (1 + random.below(12));
    spec.layers.push_back({.outputs = next,
                           .inputs = width,
                           .block = blocks[random.below(4)],
                           .density = 0.02 + 0.5 * random.unit() * random.unit()});
    width = next;
  }
  return spec;
}

// The plans of a network are chosen among a few of each layer, and one constraint fewer may bring
// others among these few. Of 1,490 relaxations 9 were dearer, the worst by 3 %, all of them by
// travelling buckets or rearranged operands.
TEST(RelaxedNetworks, RarelyCostMoreThanWithOneMoreConstraintAndLittleMore) {
  Random random(15);
  int compared = 0, dearer = 0;
  for (int i = 0; i < 150; ++i) {
    const NetworkSpec spec = draw_network(random);
    device::Machine machine = device::machine_preset("gc200");
    machine.tiles = std::int64_t{4} << random.below(5);
    Options options;
    constrain(random, options);
    options.constraints.use_dense.reset();
    try {
      const auto kept = double(plan_network(spec, machine, options).cycles.value);
      for (const Relaxation& relaxation : relaxations(options)) {
        const auto relaxed = double(plan_network(spec, machine, relaxation.options).cycles.value);
        ++compared;
        dearer += relaxed > kept;
        EXPECT_LE(relaxed, 1.05 * kept) << "network " << i << " without " << relaxation.name;
      }
    } catch (const Error& error) {  // a pinned count that no partition has, or no plan that fits
      ASSERT_NE(error.code(), ErrorCode::BadInput) << error.what();
    }
  }
  EXPECT_GE(compared, 150);
  EXPECT_LE(dearer, compared / 50);
}

}  // namespace
}  // namespace tessera::planner
