#include "tessera/runtime/internal/rehome.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "tessera/base/random_matrix.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/internal/layer_weights.hpp"
#include "tessera/runtime/internal/own_pass.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/runtime/two_layouts.hpp"

// Values of R on their way from Fwd's buckets to those of GradA's own layout.
namespace tessera::runtime {
namespace {

using internal::LayerWeights;
using Rehoming = internal::OwnPass<internal::RehomePass>;

// Weights in both layouts of a plan.
class BothLayouts {
 public:
  BothLayouts(const TwoLayouts& two, bool spilled, Executor& executor)
      : two_(two),
        problems_(planner::two_problems(two.problem, false)),
        from_(tile_grid(problems_.forward, two.plan, two.machine)),
        to_(tile_grid(problems_.transposed, two.plan.backward.front(), two.machine)),
        first_(problems_.forward, from_, executor),
        second_(problems_.transposed, to_, executor),
        executor_(executor) {
    const Dims size = two.problem.size;
    for (std::int64_t g = 0; g < size.g; ++g) {
      weights_.push_back(sparse::checked(
          sparse::random_pattern(size.x, size.y, two.problem.block, 0.2, std::uint64_t(3 + g))));
      auto values = weights_.back().mutable_values();
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(i % 512 + 1);
      turned_.push_back(sparse::transpose(weights_.back()));
    }
    fits_ = !first_.encode(weights_, {.force_spills = spilled}) &&
            !second_.encode(turned_, {.force_spills = spilled});
    if (!fits_) return;
    first_.take();
    second_.take();
  }

  bool fits() const { return fits_; }
  Rehoming pass(device::ExchangeMode mode) const {
    Rehoming pass(two_.machine, mode, executor_,
                  internal::RehomeSpec{from_, to_, two_.problem.size.g});
    for (std::size_t g = 0; g < weights_.size(); ++g) {
      const auto group = std::int64_t(g);
      const auto there = second_.bucket_positions(group);
      std::vector<std::int64_t> to;
      for (const std::int64_t place : sparse::transpose_order(turned_[g]))
        to.push_back(there[std::size_t(place)]);
      pass->tables.set_pattern(group, first_.bucket_positions(group), to);
    }
    return pass;
  }
  const std::byte* from() const { return first_.image().values; }
  // As the second layout's own encoding has them.
  bool are_right(const std::byte* values) const {
    const std::int64_t bytes = two_.problem.size.g * to_.buckets() * to_.blocks * to_.block.area() *
                               bytes_of(to_.data_type);
    return std::memcmp(values, second_.image().values, std::size_t(bytes)) == 0;
  }

 private:
  const TwoLayouts& two_;
  planner::TwoProblems problems_;
  partitioner::TileGrid from_, to_;
  LayerWeights first_, second_;
  Executor& executor_;
  std::vector<sparse::CheckedCsr<float>> weights_, turned_;
  bool fits_ = false;
};

std::vector<TwoLayouts> rehome_cases() {
  std::vector<TwoLayouts> all;
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}, BlockShape{8, 4}})
    for (const DataType type : {DataType::Float, DataType::Half})
      for (const std::int64_t groups : {1, 2})
        for (const std::int64_t tiles : {7, 24})
          all.push_back(two_layouts(
              {.size = {groups, 64, 96, 11}, .block = block, .density = 0.2, .data_type = type},
              false, tiles * groups));
  return all;
}

TEST(Rehome, BringsEveryValueToItsPlaceInBothModes) {
  const auto executor = make_executor(ExecutorKind::Threads, 2);
  for (const TwoLayouts& two : rehome_cases()) {
    const BothLayouts both(two, false, *executor);
    ASSERT_TRUE(both.fits());
    std::optional<device::Ledger> shared;
    for (const auto mode : {device::ExchangeMode::Share, device::ExchangeMode::Isolate}) {
      Rehoming pass = both.pass(mode);
      device::Ledger ledger;
      EXPECT_TRUE(pass.run({}, ledger, both.from()));
      EXPECT_TRUE(both.are_right(pass->result.data()));
      EXPECT_EQ(ledger, shared.value_or(ledger));
      shared = ledger;
    }
  }
}

TEST(Rehome, PassesOnWhatHasSpilledAndStillBringsEveryValue) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  int spilled = 0;
  for (const TwoLayouts& two : rehome_cases()) {
    const BothLayouts both(two, true, *executor);
    if (!both.fits()) continue;
    for (const auto mode : {device::ExchangeMode::Share, device::ExchangeMode::Isolate}) {
      Rehoming pass = both.pass(mode);
      device::Ledger ledger;
      EXPECT_TRUE(pass.run({}, ledger, both.from()));
      EXPECT_TRUE(both.are_right(pass->result.data()));
      spilled += ledger.steps.size() > 2;
    }
  }
  EXPECT_GT(spilled, 4);
}

// A training layer of any size, with two layouts.
TwoLayouts random_layer(std::uint64_t seed) {
  const auto draw = [&](std::uint64_t of, std::int64_t low, std::int64_t high) {
    const auto drawn = random_matrix<float>(1, 1, seed * 7 + of);
    return low + std::int64_t(double(high - low) * (double(drawn(0, 0)) + 1) / 2);
  };
  const std::int64_t side = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 4 : 8;
  TwoLayouts two = two_layouts({.size = {1, draw(0, 4, 64) * 8, draw(1, 4, 64) * 8, draw(2, 1, 64)},
                                .block = {side, side},
                                .density = 0.02 + 0.3 * double(draw(3, 0, 100)) / 100,
                                .data_type = seed % 2 == 0 ? DataType::Half : DataType::Float},
                               seed % 4 == 0, draw(4, 8, 400));
  two.machine.receive_start = Cycles(160);
  return two;
}

// Buckets move whole, so the plan knows the cycles of the move whatever they contain.
TEST(Rehome, CostsWhatThePlanSays) {
  const auto executor = make_executor(ExecutorKind::Threads, 2);
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const TwoLayouts two = random_layer(seed);
    const Dims size = two.problem.size;
    FullyConnected layer(two.problem, two.plan, two.machine, device::ExchangeMode::Share,
                         *executor);
    const auto weights =
        sparse::random_pattern(size.x, size.y, two.problem.block, two.problem.density, seed);
    if (layer.set_weights(weights)) continue;
    device::PhaseTotal counted;
    with_type(two.problem.data_type, [&]<class T>(T) {
      const auto q_grad = random_matrix<T>(size.x, size.z, 1);
      Matrix<T> s_grad(size.y, size.z);
      counted = layer.grad_a<T>(q_grad.view(), s_grad.view()).phases().front();
    });
    if (counted.steps != 2) continue;  // spilled: the plan's price is without that
    ++compared;
    const planner::RehomeCost planned =
        planner::rehome_cost(two.plan, two.plan.backward.front(), two.problem, two.machine);
    EXPECT_EQ(counted.phase, Phase::RehomeValues);
    EXPECT_EQ(counted.overhead, planned.overhead);
    EXPECT_EQ(counted.busy(), planned.cycles) << "seed " << seed;
  }
  EXPECT_GE(compared, 12);
}

TEST(Rehome, LetsTheSelfCheckSeeAFaultInItsSteps) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  const TwoLayouts two =
      two_layouts({.size = {1, 64, 96, 8}, .density = 0.2, .data_type = DataType::Half}, false, 24);
  FullyConnected layer(two.problem, two.plan, two.machine, device::ExchangeMode::Isolate,
                       *executor);
  ASSERT_FALSE(layer.set_weights(sparse::random_pattern(64, 96, {1, 1}, 0.2, 3)));
  const auto q_grad = random_matrix<Half>(64, 8, 1);
  Matrix<Half> s_grad(96, 8);
  device::Ledger ledger;
  verify::Checksums checksums;
  std::optional<device::Struck> struck;
  const auto run = [&](std::int64_t step) {
    TilePass options;
    options.pass.self_check = &checksums;
    options.tiles.struck = &struck;
    options.tiles.fault = device::Fault{TileId(0), step, 14};  // the highest bit of an exponent
    return layer.grad_a<Half>(q_grad.view(), s_grad.view(), options, ledger);
  };
  EXPECT_THROW(static_cast<void>(run(0)), Error);
  ASSERT_TRUE(struck);
  EXPECT_EQ(struck->slot, "values of the first layout");
  EXPECT_THROW(static_cast<void>(run(2)), Error) << "the first step of the pass itself";
  ASSERT_TRUE(struck);
  EXPECT_EQ(struck->slot, "bucket words");
}

TEST(Rehome, KeepsItsTableOnEveryTile) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  const TwoLayouts two = two_layouts(
      {.size = {1, 64, 96, 8}, .density = 0.2, .data_type = DataType::Float}, false, 24);
  const BothLayouts both(two, false, *executor);
  const Rehoming pass = both.pass(device::ExchangeMode::Share);
  const planner::RehomeCost planned =
      planner::rehome_cost(two.plan, two.plan.backward.front(), two.problem, two.machine);
  const Bytes table(pass->table_bytes());
  EXPECT_EQ(table, planned.table);
  EXPECT_EQ(table, Bytes(4 * two.plan.backward.front().nonzeros_per_bucket));
  EXPECT_GE(pass.high_water(), table + planned.temp);
}

}  // namespace
}  // namespace tessera::runtime
