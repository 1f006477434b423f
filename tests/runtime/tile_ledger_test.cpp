#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "tessera/tests/runtime/layer_case.hpp"

// The ledgers of single tiles must add up to the ledger of the whole machine.
namespace tessera::runtime {
namespace {

using device::StepKind;

struct Kept {
  std::vector<device::Ledger> ledgers;
  std::vector<device::TileLedger> tiles;
};

Kept run_kept(const LayerCase& c, device::ExchangeMode mode, int threads) {
  const auto executor = make_executor(ExecutorKind::Threads, threads);
  FullyConnected layer(c.problem(), c.plan(), c.machine(), mode, *executor);
  EXPECT_FALSE(layer.set_weights(c.weights, {.force_spills = c.force_spills}));
  const Operands<float> in(c);
  Matrix<float> q(c.weights.rows, c.batch), s_grad(c.weights.cols, c.batch);
  std::vector<float> gradient(c.weights.values.size());
  Kept kept{std::vector<device::Ledger>(3), std::vector<device::TileLedger>(3)};
  EXPECT_TRUE(layer.forward<float>(in.s.view(), q.view(), keeping(kept.tiles[0]), kept.ledgers[0]));
  EXPECT_TRUE(layer.grad_a<float>(in.q_grad.view(), s_grad.view(), keeping(kept.tiles[1]),
                                  kept.ledgers[1]));
  EXPECT_TRUE(layer.grad_w<float>(in.q_grad.view(), in.s.view(), gradient, keeping(kept.tiles[2]),
                                  kept.ledgers[2]));
  return kept;
}

LayerCase spilling_case(bool travelling) {
  LayerCase c;
  c.weights = random_weights(30, 42, {1, 1}, 0.3, 4);
  c.partition = {1, 3, 3, 2};
  c.batch = 9;
  c.force_spills = true;
  c.travelling_buckets = travelling;
  return c;
}

void expect_adds_up(const device::StepRecord& step, const std::vector<device::TileFigures>& tiles) {
  Cycles most, sum;
  Bytes received;
  std::int64_t sent = 0;
  for (const device::TileFigures& tile : tiles) {
    most = std::max(most, tile.cycles);
    sum += tile.cycles;
    received += tile.received;
    sent += tile.sent > Bytes();
  }
  EXPECT_EQ(most, step.cycles) << step.phase;
  EXPECT_EQ(sum, step.tile_sum) << step.phase;
  EXPECT_EQ(received, step.moved) << step.phase;
  EXPECT_EQ(sent > 0, step.moved > Bytes()) << step.phase;
  EXPECT_EQ(tiles[std::size_t(step.critical_tile.value)].cycles, most) << step.phase;
  EXPECT_GE(step.imbalance(), 1.0);
  if (sum > Cycles()) {
    EXPECT_DOUBLE_EQ(step.imbalance(),
                     double(most.value) / (double(sum.value) / double(step.tiles)));
  }
}

TEST(TileLedger, AddsUpToTheLedgerInEveryStepOfEveryPass) {
  for (const bool travelling : {false, true}) {
    const Kept kept = run_kept(spilling_case(travelling), device::ExchangeMode::Share, 1);
    for (std::size_t pass = 0; pass < 3; ++pass) {
      SCOPED_TRACE(pass);
      const auto& steps = kept.ledgers[pass].steps;
      ASSERT_EQ(kept.tiles[pass].steps.size(), steps.size());
      ASSERT_EQ(kept.tiles[pass].stages.size(), steps.size());
      for (std::size_t i = 0; i < steps.size(); ++i)
        expect_adds_up(steps[i], kept.tiles[pass].steps[i]);
    }
  }
}

TEST(TileLedger, DoesNotDependOnModeOrThreadsAndChangesNoLedger) {
  const LayerCase c = spilling_case(true);
  const Kept one = run_kept(c, device::ExchangeMode::Share, 1);
  const Kept other = run_kept(c, device::ExchangeMode::Isolate, 3);
  EXPECT_EQ(one.ledgers, other.ledgers);
  EXPECT_EQ(one.tiles, other.tiles);
  EXPECT_EQ(run_case(c)->ledgers, one.ledgers);
}

std::int64_t count_steps(const device::Ledger& ledger, StepKind kind, Phase phase) {
  return std::count_if(ledger.steps.begin(), ledger.steps.end(),
                       [&](const auto& step) { return step.kind == kind && step.phase == phase; });
}

TEST(TileLedger, ChargesAQuestionForEveryMoveAlongXOrYAndOneToStop) {
  LayerCase c = spilling_case(false);
  c.partition.z = 1;  // forced spills go to another cell, not to another z
  const Kept kept = run_kept(c, device::ExchangeMode::Share, 1);
  const std::int64_t moves = count_steps(kept.ledgers[0], StepKind::Exchange, Phase::Propagate);
  EXPECT_GT(moves, 1);
  EXPECT_EQ(count_steps(kept.ledgers[0], StepKind::Control, Phase::Control), moves + 1);
}

TEST(TileLedger, ChargesNoQuestionForMovesAlongZ) {
  LayerCase c = spilling_case(true);
  c.force_spills = false;
  c.partition = {1, 1, 1, 4};
  const Kept kept = run_kept(c, device::ExchangeMode::Share, 1);
  const device::Ledger& grad_w = kept.ledgers[2];
  EXPECT_EQ(count_steps(grad_w, StepKind::Compute, Phase::Propagate), 3);
  EXPECT_EQ(count_steps(grad_w, StepKind::Control, Phase::Control), 2);  // to begin and to stop
}

TEST(Origin, HasANameForEach) {
  EXPECT_EQ(to_string(device::StepRecord::kBytesOrigin), "counted");
  EXPECT_EQ(to_string(device::StepRecord::kCyclesOrigin), "modelled");
  EXPECT_EQ(to_string(device::Origin::Measured), "measured");
}

}  // namespace
}  // namespace tessera::runtime
