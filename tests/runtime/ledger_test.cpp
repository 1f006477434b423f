#include <gtest/gtest.h>

#include "tessera/codelets/cost/matmul_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/tests/runtime/layer_case.hpp"

// Ledgers written out by hand for layers that are small enough to count.
namespace tessera::runtime {
namespace {

using device::StepKind;

void expect_step(const device::StepRecord& step, Phase phase, StepKind kind, std::int64_t cycles,
                 std::int64_t moved) {
  EXPECT_EQ(step.phase, phase);
  EXPECT_EQ(step.kind, kind) << phase;
  EXPECT_EQ(step.cycles, Cycles(cycles)) << phase;
  EXPECT_EQ(step.moved, Bytes(moved)) << phase;
  const device::Machine machine = device::machine_preset("gc200");
  const Cycles wait = kind == StepKind::Control   ? machine.sync + machine.launch
                      : kind == StepKind::Compute ? machine.launch
                      : moved > 0                 ? machine.sync
                                                  : Cycles();
  EXPECT_EQ(step.overhead, wait) << phase;
}

// One question: worked out on one tile, and a word of 4 bytes for each of the others.
void expect_control(const device::StepRecord& step, std::int64_t tiles) {
  expect_step(step, Phase::Control, StepKind::Control,
              device::machine_preset("gc200").control.value + 1, 4 * (tiles - 1));
  EXPECT_EQ(step.critical_tile, TileId(tiles - 1));
}

// 4 x 4, full, on tiles x 2 * y 2: every cell is 2 x 2 full. Batch 4, float.
LayerCase full_layer(bool travelling) {
  LayerCase c;
  Matrix<float> dense(4, 4);
  for (float& v : dense.elements()) v = 1;
  c.weights = sparse::from_dense(std::as_const(dense).view(), {1, 1});
  c.batch = 4;
  c.partition = {1, 2, 2, 1};
  c.room = 1;
  c.travelling_buckets = travelling;
  return c;
}

std::int64_t scan(codelets::Method method) {
  return codelets::expected_scan_cycles(method, 1, 1, 1).value;
}

TEST(HandCount, ForwardOfAFullLayerOnFourTiles) {
  const auto results = run_case(full_layer(false));
  ASSERT_TRUE(results);
  const auto& steps = results->ledgers[0].steps;
  ASSERT_EQ(steps.size(), 5u);
  // Each tile holds one of the two rows of its slice of S and fetches the other, 4 floats: 4 tiles
  // receive 16 bytes. Neighbours on a bus (x 0 and 1 of a y) swap: each takes what only it lacks.
  expect_step(steps[0], Phase::PreArrange, StepKind::Exchange, 16 / 4, 4 * 16);
  // Clears 2 x 4 floats. Two rows and two z grains of 2 floats go to 6 workers: four work, each one
  // row of two non-zeros and z 2: 6 * (27 + 11 + 2 * 2) by the formulas' table.
  const std::int64_t multiply = scan(codelets::Method::ElementFwd) + 6 * (27 + 1 * (11 + 2 * 2));
  expect_step(steps[1], Phase::Distribute, StepKind::Compute,
              codelets::zero_cycles(32, 6).value + multiply, 0);
  expect_control(steps[2], 4);  // nothing has spilled
  // Eight sums a tile, each of the two tiles of a column gets four of the other's.
  expect_step(steps[3], Phase::Reduce, StepKind::Exchange, 16 / 4, 4 * 16);
  expect_step(steps[4], Phase::Reduce, StepKind::Compute,
              codelets::reduce_cycles(4, 2, DataType::Float, DataType::Float, 6).value, 0);
}

TEST(HandCount, WeightGradientWithTravellingOperandsNeedsNoRoundWhenZIsWhole) {
  const auto results = run_case(full_layer(false));
  ASSERT_TRUE(results);
  const auto& steps = results->ledgers[2].steps;
  ASSERT_EQ(steps.size(), 3u);
  expect_control(steps[2], 4);
  EXPECT_EQ(steps[0].phase, Phase::PreArrange);
  EXPECT_EQ(steps[1].phase, Phase::Distribute);
  // Four values between six workers: four of them do one value of one row, z 4.
  expect_step(steps[1], Phase::Distribute, StepKind::Compute,
              codelets::zero_cycles(16, 6).value + scan(codelets::Method::ElementGradW) +
                  6 * (30 + 1 * 9 + 1 * 5),
              0);
}

TEST(HandCount, WeightGradientWithTravellingBucketsCirclesOnceThroughZ) {
  LayerCase c = full_layer(true);
  c.partition = {1, 1, 1, 2};  // two tiles, z 2 each, eight of the sixteen values
  const auto results = run_case(c);
  ASSERT_TRUE(results);
  const auto& steps = results->ledgers[2].steps;
  ASSERT_EQ(steps.size(), 8u);
  const planner::Plan plan = c.plan();
  expect_control(steps[2], 2);  // z 1 is left
  expect_control(steps[5], 2);  // nothing is left; how far home is goes with it
  const std::int64_t bucket = 2 * plan.fwd_meta_words.value + 4 * plan.nonzeros_per_bucket;
  expect_step(steps[0], Phase::PreArrange, StepKind::Exchange, 0, 0);  // one tile per slice
  EXPECT_EQ(steps[1].kind, StepKind::Compute);
  const std::int64_t travel =
      ceil_div(2 * plan.fwd_meta_words.value + 4 * plan.nonzeros_per_bucket, 4);
  expect_step(steps[3], Phase::Propagate, StepKind::Exchange, travel, 2 * bucket);
  EXPECT_EQ(steps[4].kind, StepKind::Compute);
  expect_step(steps[6], Phase::Propagate, StepKind::Exchange, travel, 2 * bucket);  // and back
  expect_step(steps[7], Phase::Propagate, StepKind::Exchange, 0, 0);                // into its home
}

TEST(HandCount, BlocksAreTurnedOverBeforeTheyTravel) {
  LayerCase c;
  c.weights = random_weights(16, 16, {4, 4}, 0.5, 3);
  c.partition = {1, 2, 1, 2};
  const auto results = run_case(c);
  ASSERT_TRUE(results);
  const auto& steps = results->ledgers[1].steps;
  expect_step(
      steps[0], Phase::Transpose, StepKind::Compute,
      codelets::transpose_blocks_cycles(c.plan().blocks_per_bucket(), {4, 4}, DataType::Float, 6)
          .value,
      0);
  EXPECT_EQ(steps[1].phase, Phase::PreArrange);
}

TEST(HandCount, OperandsAreRearrangedOnlyForTheAllWorkersMethod) {
  LayerCase c;
  c.weights = random_weights(16, 16, {8, 8}, 0.5, 3);
  c.batch = 8;
  c.partition = {1, 1, 1, 1};
  planner::Plan plan = c.plan();
  plan.grad_w = planner::Method::BlockGradWAmp;
  const auto executor = make_executor(1);
  device::Machine machine = device::machine_preset("gc200");
  FullyConnected layer(c.problem(), plan, machine, device::ExchangeMode::Share, *executor);
  ASSERT_FALSE(layer.set_weights(c.weights));
  const auto s = random_matrix<float>(16, 8, 1), q_grad = random_matrix<float>(16, 8, 2);
  sparse::Csr<float> gradient = layer.weights();
  const device::Ledger ledger = layer.grad_w<float>(q_grad.view(), s.view(), gradient.values);
  expect_step(ledger.steps[1], Phase::Rearrange, StepKind::Compute,
              2 * codelets::rearrange_cycles(2, 8, 8, DataType::Float, 6).value, 0);
  EXPECT_TRUE(
      verify::verify_gradient<float>(c.weights, gradient, q_grad.view(), s.view(), {}).ok());
}

TEST(HandCount, MemoryOfATileIsWhatItsSlotsAddUpTo) {
  LayerCase c = full_layer(false);
  const planner::Plan plan = c.plan();
  const auto executor = make_executor(1);
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 4;
  Problem problem = c.problem();
  problem.grad_a = problem.grad_w = false;
  const FullyConnected layer(problem, plan, machine, device::ExchangeMode::Share, *executor);
  const std::int64_t bucket = 2 * plan.fwd_meta_words.value + 4 * plan.nonzeros_per_bucket;
  // In propagation: the bucket at home and two that travel, S [2][4] and the sums [2][4]. The last
  // tile holds the travel words too: three and one for each of two x distances, 4 bytes each.
  EXPECT_EQ(layer.high_water(), Bytes(3 * bucket + 32 + 32 + 20));
}

}  // namespace
}  // namespace tessera::runtime
