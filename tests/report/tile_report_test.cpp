#include "tessera/report/tile_report.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "tessera/base/pass.hpp"
#include "tessera/tests/runtime/layer_case.hpp"

namespace tessera::report {
namespace {

using device::StepKind;

// A forward pass in which buckets travel, so that there are steps of all kinds.
struct SpilledRun {
  device::Ledger ledger;
  device::TileLedger kept;
  TileReport report;

  SpilledRun() {
    runtime::LayerCase c;
    c.weights = runtime::random_weights(30, 42, {1, 1}, 0.3, /*seed=*/4);
    c.partition = {1, 3, 3, 2};
    c.batch = 9;
    c.force_spills = true;
    const auto executor = make_executor(ExecutorKind::Threads, 1);
    runtime::FullyConnected layer(c.problem(), c.plan(), c.machine(), device::ExchangeMode::Share,
                                  *executor);
    EXPECT_FALSE(layer.set_weights(c.weights, {.force_spills = true}));
    const runtime::Operands<float> in(c);
    Matrix<float> q(c.weights.rows, c.batch);
    EXPECT_TRUE(layer.forward<float>(in.s.view(), q.view(), runtime::keeping(kept), ledger));
    report = tile_report(ledger, kept, layer.memory(Pass::Fwd), layer.program(Pass::Fwd));
  }
};

template <class Quantity>
Quantity sum_of(const std::vector<Quantity>& list) {
  return std::accumulate(list.begin(), list.end(), Quantity());
}

TEST(TileReport, AddsUpToTheLedger) {
  const SpilledRun run;
  Cycles compute, exchange;
  for (const device::StepRecord& step : run.ledger.steps) {
    if (step.kind == StepKind::Compute) compute += step.tile_sum;
    if (step.kind == StepKind::Exchange) exchange += step.tile_sum;
  }
  EXPECT_GT(compute, Cycles());
  EXPECT_GT(exchange, Cycles());
  EXPECT_EQ(sum_of(run.report.compute), compute);
  EXPECT_EQ(sum_of(run.report.exchange), exchange);
  EXPECT_EQ(sum_of(run.report.received), run.ledger.moved());
  EXPECT_EQ(run.report.compute.size(), 18u);
}

TEST(TileReport, GivesEveryTileWhatItDidItself) {
  const SpilledRun run;
  for (const std::size_t tile : {std::size_t{0}, std::size_t{7}, std::size_t{17}}) {
    Bytes sent;
    Cycles compute;
    for (std::size_t i = 0; i < run.kept.steps.size(); ++i) {
      sent += run.kept.steps[i][tile].sent;
      if (run.ledger.steps[i].kind == StepKind::Compute) compute += run.kept.steps[i][tile].cycles;
    }
    EXPECT_EQ(run.report.sent[tile], sent) << tile;
    EXPECT_EQ(run.report.compute[tile], compute) << tile;
  }
}

TEST(TileReport, HasALifeForEveryBuffer) {
  const SpilledRun run;
  ASSERT_FALSE(run.report.buffers.empty());
  EXPECT_EQ(run.report.buffers.size(), run.report.liveness.lives.size());
  for (const runtime::Liveness::Life& life : run.report.liveness.lives)
    EXPECT_LT(std::size_t(life.last), run.report.liveness.stages.size());
}

TEST(TileReport, StepsWithoutTilesAddNothing) {
  SpilledRun run;
  run.ledger.steps.insert(
      run.ledger.steps.begin(),
      {.phase = Phase::RehomeValues, .kind = StepKind::Exchange, .cycles = Cycles(9)});
  run.kept.steps.insert(run.kept.steps.begin(), std::vector<device::TileFigures>());
  const TileReport again = tile_report(run.ledger, run.kept, run.report.memory, {"Fwd", {}, {}});
  EXPECT_EQ(again.exchange, run.report.exchange);
  EXPECT_EQ(again.sent, run.report.sent);
}

TEST(Imbalance, ComparesTheSlowestTileWithTheMeanOfThoseThatTookPart) {
  device::Ledger ledger;
  EXPECT_EQ(imbalance(ledger), (Imbalance{-1, 1, 1}));
  const auto step = [](StepKind kind, int cycles, int sum, int tiles) {
    return device::StepRecord{
        .kind = kind, .cycles = Cycles(cycles), .tile_sum = Cycles(sum), .tiles = tiles};
  };
  ledger.steps = {step(StepKind::Compute, 100, 200, 4), step(StepKind::Compute, 300, 400, 2),
                  step(StepKind::Exchange, 300, 300, 4)};
  // Compute: 100 + 300 against 50 + 200. The first of the two longest steps counts.
  EXPECT_EQ(imbalance(ledger), (Imbalance{1, 1.5, 1.6}));
  ledger.steps[2].cycles = Cycles(301);
  EXPECT_EQ(imbalance(ledger).longest_step, 2);
}

}  // namespace
}  // namespace tessera::report
