// Compares the planned cycles of static layers with those of the engine, phase by phase.
#include <gtest/gtest.h>

#include <map>

#include "tessera/base/int_math.hpp"
#include "tessera/planner/cost_term.hpp"
#include "tessera/tests/runtime/static_case.hpp"

namespace tessera::runtime {
namespace {

using planner::random_matrix;

// The cycles of a phase in a ledger, without barriers and launches.
Cycles cycles_in(const device::Ledger& ledger, Phase phase) {
  Cycles sum;
  for (const device::StepRecord& step : ledger.steps)
    if (phase == Phase::Overhead)
      sum += step.overhead;
    else if (step.phase == phase)
      sum += step.cycles;
  return sum;
}

// The planner counts the pattern, the engine the words and the bytes.
void expect_planned_cycles(const StaticCase& c) {
  SCOPED_TRACE(c.name());
  const auto executor = make_executor(2);
  StaticLayer layer = c.layer(*executor);
  const planner::PlanCost planned =
      planner::count_static_cost(c.plans[0], c.problem, planner::view_of(*c.weights[0]), c.machine);
  const auto ledgers =
      with_type(c.problem.data_type, [&]<class T>(T) { return run_all<T>(c, layer).ledgers; });
  Cycles total;
  ASSERT_EQ(planned.passes.size(), ledgers.size());
  for (std::size_t p = 0; p < ledgers.size(); ++p) {
    const planner::PassCost& pass = planned.passes[p];
    SCOPED_TRACE(to_string(pass.pass));
    std::map<Phase, Cycles> by_phase;
    for (const planner::CostTerm& term : pass.terms)
      by_phase[planner::phase_of(term.name, pass.pass, false)] += term.cycles;
    for (const auto& [phase, cycles] : by_phase)
      EXPECT_EQ(cycles_in(ledgers[p], phase), cycles) << to_string(phase);
    EXPECT_EQ(ledgers[p].total(), pass.cycles());
    total += ledgers[p].total();
  }
  EXPECT_EQ(total, planned.cycles);
}

// Replaces the plans by those of the default search.
StaticCase planned_by_counts(StaticCase c) {
  c.plans = {
      planner::plan_static(c.problem, planner::view_of(*c.weights[0]), c.machine).plan.value()};
  return c;
}

TEST(StaticPlanned, RunsForThePlannedCyclesPhaseByPhase) {
  Random random(7);
  for (const std::int64_t block : {1, 4, 8, 16})
    for (const DataType type : {DataType::Float, DataType::Half})
      for (int trial = 0; trial < 3; ++trial) {
        const auto m = random_matrix(random, 4 + random.below(40), 4 + random.below(40), block,
                                     0.05 + 0.5 * random.unit());
        if (m.blocks() == 0) continue;
        const StaticCase c = static_case(m, 1 + random.below(90), type, 2 + random.below(64));
        expect_planned_cycles(c);
        expect_planned_cycles(planned_by_counts(c));
      }
}

TEST(StaticPlanned, RunsGradAOnTilesOfItsOwnForThePlannedCycles) {
  Random random(11);
  int planned_apart = 0;
  for (const std::int64_t block : {1, 4, 16})
    for (const std::int64_t start : {0, 160})
      for (int trial = 0; trial < 3; ++trial) {
        const auto m = random_matrix(random, 20 + random.below(60), 4 + random.below(20), block,
                                     0.05 + 0.3 * random.unit());
        if (m.blocks() == 0) continue;
        StaticCase c = static_case(m, 8 + random.below(90), DataType::Half, 8 + random.below(64));
        c.machine.receive_start = Cycles(start);
        give_grad_a_random_tiles(c, random);
        expect_planned_cycles(c);
        const StaticCase planned = planned_by_counts(c);
        planned_apart += planned.plans[0].grad_a.has_value();
        expect_planned_cycles(planned);
      }
  EXPECT_GE(planned_apart, 1);
}

// Tiles pay for every other tile that sends to them.
TEST(StaticPlanned, RunsForThePlannedCyclesWhereSendersHaveAPrice) {
  Random random(8);
  for (const std::int64_t block : {1, 4, 16})
    for (const std::int64_t start : {1, 160})
      for (int trial = 0; trial < 4; ++trial) {
        const auto m = random_matrix(random, 4 + random.below(30), 4 + random.below(30), block,
                                     0.05 + 0.5 * random.unit());
        if (m.blocks() == 0) continue;
        StaticCase c = static_case(m, 1 + random.below(90), DataType::Half, 2 + random.below(64));
        c.machine.receive_start = Cycles(start);
        expect_planned_cycles(c);
        expect_planned_cycles(planned_by_counts(c));
      }
}

// The bytes of the program's buffers that stay, on the tile that has most of them.
Bytes resident_bytes(const device::MemoryUse& use) {
  Bytes sum;
  for (const device::HeldBuffer& buffer : use.at_peak)
    if (buffer.name == "values" || buffer.name == "static words") sum += buffer.bytes;
  return sum;
}

// One row of blocks for each tile: all tiles need the same memory.
TEST(StaticPlanned, StoresTheValuesThatThePlanCounts) {
  for (const std::int64_t batch : {4, 256}) {
    sparse::Csr<float> m;
    m.rows = 64;
    m.cols = 64;
    m.block = {16, 16};
    for (std::int32_t row = 0; row < 4; ++row) {
      for (std::int32_t column = 0; column < 4; ++column) m.col.push_back(column);
      m.row_begin.push_back(m.blocks());
    }
    for (const std::int64_t parts : {1, 3}) {
      if (parts > batch / 4) continue;
      StaticCase c = static_case(m, batch, DataType::Half, 4 * parts);
      c.problem.grad_a = c.problem.grad_w = false;
      c.plans = {planner::plan_static(c.problem, planner::view_of(m), c.machine,
                                      {.z_parts = parts, .bands = 1})
                     .plan.value()};
      const auto executor = make_executor(1);
      StaticLayer layer = c.layer(*executor);
      const std::int64_t shares = 2 * ceil_div(64 * batch * 2, c.machine.tiles);
      EXPECT_EQ(c.plans[0].cost.resident, resident_bytes(layer.memory(Pass::Fwd)) + Bytes(shares));
    }
  }
}

// Products of the sizes that were published. In the first one, every row lies on several tiles of
// PopLibs' cut, which add unequal shares.
TEST(StaticPlanned, RunsLargeProductsForThePlannedCycles) {
  constexpr std::int64_t kSide = 1024;
  struct Cell {
    std::int64_t block;
    double density;
    std::int64_t batch;
  };
  Random random(9);
  for (const auto& [block, density, batch] : {Cell{4, 1.0 / 4, 64}, Cell{4, 1.0 / 32, 64},
                                              Cell{8, 1.0 / 8, 4}, Cell{16, 1.0 / 32, 256}}) {
    const auto m = random_matrix(random, kSide / block, kSide / block, block, density);
    const StaticCase c = static_case(m, batch, DataType::Half, device::machine_preset("bow").tiles);
    expect_planned_cycles(c);
    expect_planned_cycles(planned_by_counts(c));
  }
}

// A plan for all passes costs no more in all of them than one for Fwd alone.
TEST(StaticPlanned, PlansForAllPassesOfTheProblem) {
  Random random(10);
  for (const std::int64_t block : {1, 4, 16})
    for (const std::int64_t batch : {8, 200}) {
      const auto m = random_matrix(random, 400 / block, 900 / block, block, 0.1);
      const StaticCase c = static_case(m, batch, DataType::Half, 300);
      Problem forward = c.problem;
      forward.grad_a = forward.grad_w = false;
      const auto view = planner::view_of(m);
      const auto of_fwd = planner::plan_static(forward, view, c.machine).plan.value();
      const auto of_all = planner::plan_static(c.problem, view, c.machine).plan.value();
      EXPECT_EQ(of_fwd.cost.passes.size(), 1u);
      EXPECT_LE(of_all.cost.cycles,
                planner::count_static_cost(of_fwd, c.problem, view, c.machine).cycles);
    }
}

}  // namespace
}  // namespace tessera::runtime
