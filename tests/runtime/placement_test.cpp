// The three placements of dense operands: what the planner prices is what the engine runs.
#include "tessera/base/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::runtime {
namespace {

constexpr Placement kPlacements[] = {Placement::EvenSpread, Placement::AsLeft, Placement::AtHome};
constexpr Pass kPasses[] = {Pass::Fwd, Pass::GradA, Pass::GradW};

device::Machine small_machine() {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 24;
  return machine;
}

Problem training_layer(BlockShape block) {
  return {.size = {1, 128, 96, 32},
          .block = block,
          .density = 0.25,
          .data_type = DataType::Half,
          .partials_type = DataType::Float,
          .grad_a = true,
          .grad_w = true};
}

// A training step of a layer with its plan.
struct Step {
  planner::Plan plan;
  std::vector<device::Ledger> ledgers;
  Matrix<Half> q, s_grad;
  sparse::Csr<float> gradient;
};

Step run_step(const Problem& problem, Placement placement,
              const planner::PlanConstraints& pins = {}) {
  planner::Options options;
  options.constraints = pins;
  options.constraints.use_dense = false;
  options.operand_placement = placement;
  options.per_pass_plans = false;
  const device::Machine machine = small_machine();
  const auto executor = make_executor(1);
  Step step{planner::plan_or_throw(problem, machine, options),
            {},
            Matrix<Half>(problem.size.x, problem.size.z),
            Matrix<Half>(problem.size.y, problem.size.z),
            {}};
  FullyConnected layer(problem, step.plan, machine, device::ExchangeMode::Isolate, *executor);
  const auto weights = sparse::random_pattern(problem.size.x, problem.size.y, problem.block,
                                              problem.density, /*seed=*/5);
  EXPECT_FALSE(layer.set_weights(weights));
  const Matrix<Half> s = random_matrix<Half>(problem.size.y, problem.size.z, 1);
  const Matrix<Half> dq = random_matrix<Half>(problem.size.x, problem.size.z, 2);
  step.ledgers.push_back(layer.forward<Half>(s.view(), step.q.view()));
  step.ledgers.push_back(layer.grad_a<Half>(dq.view(), step.s_grad.view()));
  step.gradient = layer.weights();
  step.ledgers.push_back(layer.grad_w<Half>(dq.view(), s.view(), step.gradient.values));
  return step;
}

Cycles planned(const planner::Plan& plan, Pass pass, planner::Term term) {
  Cycles sum;
  for (const planner::CostTerm& t : plan.cost.find(pass)->terms)
    if (t.name == term) sum += t.cycles;
  return sum;
}

Cycles counted(const device::Ledger& ledger, Phase phase) {
  Cycles sum;
  for (const device::StepRecord& step : ledger.steps)
    if (step.phase == phase) sum += step.cycles;
  return sum;
}

TEST(Placement, IsRunAsItIsPlanned) {
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}, BlockShape{8, 8}})
    for (const Placement placement : kPlacements) {
      const Step step = run_step(training_layer(block), placement);
      SCOPED_TRACE(std::string(to_string(placement)) + "\n" + to_string(step.plan));
      EXPECT_EQ(step.plan.operand_placement, placement);
      for (std::size_t i = 0; i < std::size(kPasses); ++i) {
        const Pass pass = kPasses[i];
        const device::Ledger& ledger = step.ledgers[i];
        EXPECT_EQ(counted(ledger, Phase::Arrange),
                  planned(step.plan, pass, planner::Term::ArrangeOperands) +
                      planned(step.plan, pass, planner::Term::ArrangeResult));
        EXPECT_EQ(counted(ledger, Phase::Arrange) > Cycles(),
                  spreads_operands(placement, pass) || spreads_result(placement, pass));
        const Cycles fetched = counted(ledger, Phase::PreArrange);
        EXPECT_LE(fetched, planned(step.plan, pass, planner::Term::ExchangeOperands))
            << to_string(pass);
      }
    }
}

// The even share of S is 96 * 32 * 2 / 24 bytes, that of Q 128 * 32 * 2 / 24, at a byte a cycle.
TEST(Placement, ChargesTheEvenShareOfEachOperandOnce) {
  const Step step = run_step(training_layer({4, 4}), Placement::EvenSpread);
  const Cycles s(256), q(342);
  EXPECT_EQ(counted(step.ledgers[0], Phase::Arrange), s + q);
  EXPECT_EQ(counted(step.ledgers[1], Phase::Arrange), q + s);
  EXPECT_EQ(counted(step.ledgers[2], Phase::Arrange), q + s);
}

TEST(Placement, IsBoughtWithCyclesAndNeverChangesAResult) {
  const Problem problem = training_layer({4, 4});
  const planner::PlanConstraints pins{.x = 2, .y = 3, .z = 2};
  const Step spread = run_step(problem, Placement::EvenSpread, pins);
  const Step home = run_step(problem, Placement::AtHome, pins);
  EXPECT_GT(spread.plan.cost.cycles, home.plan.cost.cycles);
  EXPECT_EQ(spread.q, home.q);
  EXPECT_EQ(spread.s_grad, home.s_grad);
  EXPECT_EQ(spread.gradient, home.gradient);
}

}  // namespace
}  // namespace tessera::runtime
