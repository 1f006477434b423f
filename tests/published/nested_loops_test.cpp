#include "tessera/bench/published/nested_loops.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/base/random.hpp"
#include "tessera/runtime/propagation.hpp"

namespace tessera::bench {
namespace {

NestedLoops ours(const partitioner::Travel& travel, const Dims& splits) {
  NestedLoops count;
  std::vector<runtime::PropagationStep> steps;
  runtime::propagation_steps(travel, splits, runtime::Served::AllOfZ, steps);
  for (const runtime::PropagationStep& step : steps) {
    ++count.moves;
    count.visits += step.compute;
  }
  return count;
}

TEST(NestedLoops, AFewSpillsAlongXNeedAFractionOfTheVisits) {
  partitioner::Travel travel;
  travel.y_end = {2, 1};  // one step along y, one along x
  const Dims splits{1, 4, 8, 2};
  EXPECT_EQ(nested_loops(travel, splits).visits, 2 * 8 * 2 - 2);
  EXPECT_EQ(ours(travel, splits).visits, 2 * 2);
}

TEST(NestedLoops, TheLoopsOfPopSparseWalkEveryYOnceMore) {
  partitioner::Travel travel;
  travel.y_end = {3};
  const Dims splits{1, 1, 4, 2};
  // Two y distances of two z each; PopSparse moves along z behind both of the first column.
  EXPECT_EQ(nested_loops(travel, splits).visits, 4);
  EXPECT_EQ(ours(travel, splits).visits, 4);
  EXPECT_EQ(nested_loops(travel, splits).moves, 1 + 2 + 1 + 1);
  EXPECT_EQ(ours(travel, splits).moves, 4);
}

// Over random bounds: never more visits or moves, and in all far fewer.
TEST(NestedLoops, IsNeverALossAndMoreThanAThirdOfAllVisits) {
  Random random(23);
  NestedLoops sum_ours, sum_nested;
  for (int round = 0; round < 500; ++round) {
    const Dims splits{1, 1 + random.below(6), 1 + random.below(6), 1 + random.below(3)};
    partitioner::Travel travel;
    travel.y_end.assign(std::size_t(1 + random.below(splits.x)), 0);
    for (auto& y : travel.y_end) y = static_cast<std::int32_t>(random.below(splits.y + 1));
    travel.y_end.front() = std::max(travel.y_end.front(), 1);
    if (travel.y_end.back() == 0) travel.y_end.back() = 1;
    const NestedLoops a = ours(travel, splits), b = nested_loops(travel, splits);
    EXPECT_LE(a.visits, b.visits) << "round " << round << ", " << to_string(splits);
    sum_ours.moves += a.moves, sum_ours.visits += a.visits;
    sum_nested.moves += b.moves, sum_nested.visits += b.visits;
  }
  RecordProperty("visits", int(sum_ours.visits));
  RecordProperty("nested_visits", int(sum_nested.visits));
  EXPECT_LT(3 * sum_ours.visits, 2 * sum_nested.visits);
  EXPECT_LT(sum_ours.moves, sum_nested.moves);
}

// One y distance and four parts of z: the condition around the loops; a decision for each turn of
// the loops over x, y and z and one for their ends; whether x holds blocks; for each of four visits
// the buffer to read and whether visits are left; the buffer to write for three moves; and whether
// visits are left after the loops over z and y.
TEST(NestedLoops, DecideOnEveryTurnOfEveryLoop) {
  partitioner::Travel travel;
  travel.y_end = {2};
  const NestedLoops loops = nested_loops(travel, {1, 19, 19, 4});
  EXPECT_EQ(loops.moves, 4);
  EXPECT_EQ(loops.visits, 4);
  EXPECT_EQ(loops.decisions, 1 + (2 + 2 + 5) + 1 + 4 * 2 + 3 + 2);
  EXPECT_EQ(loops.updates, 2 + 4 + 3 * 2);
}

TEST(NestedLoops, EndAfterOneDecisionIfNothingHasSpilled) {
  const NestedLoops loops = nested_loops({}, {1, 4, 4, 2});
  EXPECT_EQ(loops, (NestedLoops{.decisions = 1, .updates = 1}));
}

device::StepRecord step(Phase phase, StepKind kind, std::int64_t cycles, std::int64_t overhead) {
  device::StepRecord record;
  record.phase = phase;
  record.kind = kind;
  record.cycles = Cycles(cycles);
  record.overhead = Cycles(overhead);
  return record;
}

TEST(NestedLoops, ChargeTheDifferenceAtThePricesOfTheLedger) {
  device::Machine machine = device::machine_preset("bow");
  machine.launch = Cycles(7);
  partitioner::Travel travel;
  travel.y_end = {2};
  device::Ledger ledger;
  ledger.steps = {step(Phase::Control, StepKind::Control, 50, 400),
                  step(Phase::Propagate, StepKind::Exchange, 1000, 400),
                  step(Phase::Propagate, StepKind::Compute, 600, 7)};
  const std::int64_t before = ledger.total().value;
  charge_nested_loops(travel, {1, 19, 19, 4}, machine, ledger);
  EXPECT_EQ(ledger.total().value - before, 3 * 1400 + 3 * 607 + 23 * (50 + 400) + 12 * (50 + 7));
  const device::Ledger charged = ledger;
  charge_nested_loops({}, {1, 19, 19, 4}, machine, ledger);
  EXPECT_EQ(ledger, charged) << "nothing has spilled";
}

}  // namespace
}  // namespace tessera::bench
