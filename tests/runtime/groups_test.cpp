#include <gtest/gtest.h>

#include "tessera/base/error.hpp"
#include "tessera/tests/runtime/group_case.hpp"
#include "tessera/tests/support/gradients.hpp"

namespace tessera::runtime {
namespace {

GroupCase make_case(std::int64_t rows, std::int64_t cols, BlockShape block, std::int64_t groups) {
  GroupCase c;
  c.cut.batch = 6;
  c.cut.partition = {1, 2, 3, 2};
  for (std::int64_t g = 0; g < groups; ++g)
    c.weights.push_back(random_weights(rows, cols, block, 0.3, std::uint64_t(40 + g)));
  return c;
}

// Every way to run a pass; three groups with other patterns each.
std::vector<GroupCase> programs() {
  std::vector<GroupCase> cases;
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}, {2, 3}})
    for (const DataType type : {DataType::Float, DataType::Half})
      for (const bool travelling : {false, true})
        for (const bool spills : {false, true}) {
          GroupCase c = make_case(12 * block.rows, 15 * block.cols, block, 3);
          c.cut.type = type;
          c.cut.travelling_buckets = travelling;
          c.cut.force_spills = spills;
          if (spills) c.cut.partition.z = 1;
          cases.push_back(c);
        }
  GroupCase separate = cases[0], padded = cases[0], dense = cases[0];
  separate.cut.separate_grad_a = true;
  padded.cut.batch = 5;
  dense.cut.dense = true;
  dense.cut.partition = {1, 2, 1, 2};
  cases.insert(cases.end(), {separate, padded, dense});
  return cases;
}

std::string name_of(const GroupCase& c) { return c.layer_of(0).name(); }

template <class T>
void expect_groups_are_layers_of_their_own(const GroupCase& c, const How& how) {
  const GroupRun<T> together = run_groups<T>(c, {0, c.groups()}, how);
  for (std::int64_t g = 0; g < c.groups(); ++g) {
    const GroupRun<T> alone = run_groups<T>(c, {g, g + 1}, how);
    ASSERT_EQ(together.travel[std::size_t(g)], alone.travel[0]);
    EXPECT_TRUE(holds_rows(together.q, g * c.rows(), alone.q)) << "group " << g;
    EXPECT_TRUE(holds_rows(together.s_grad, g * c.cols(), alone.s_grad)) << "group " << g;
    EXPECT_EQ(together.gradients[std::size_t(g)], alone.gradients[0]) << "group " << g;
  }
}

TEST(Groups, GiveTheBitsOfLayersOfTheirOwn) {
  for (const GroupCase& c : programs())
    for (const auto mode : {device::ExchangeMode::Share, device::ExchangeMode::Isolate}) {
      SCOPED_TRACE(name_of(c));
      if (c.cut.type == DataType::Half)
        expect_groups_are_layers_of_their_own<Half>(c, {.mode = mode});
      else
        expect_groups_are_layers_of_their_own<float>(c, {.mode = mode});
    }
}

// A step of all groups takes as long as that of the slowest and moves what all of them move. The
// tiles of a group must fill whole exchange buses for that (two tiles on this machine).
void expect_slowest_of(const std::vector<device::Ledger>& alone, const device::Ledger& together) {
  for (std::size_t i = 0; i < together.steps.size(); ++i) {
    device::StepRecord want = alone[0].steps[i];
    want.tile_sum = Cycles();
    want.moved = Bytes();
    want.tiles = 0;
    for (std::size_t g = 0; g < alone.size(); ++g) {
      ASSERT_EQ(alone[g].steps.size(), together.steps.size());
      const device::StepRecord& step = alone[g].steps[i];
      want.cycles = std::max(want.cycles, step.cycles);
      want.tile_sum += step.tile_sum;
      want.moved += step.moved;
      want.tiles += step.tiles;
    }
    if (want.kind == device::StepKind::Control) {  // one tile decides for all groups
      want.tile_sum = want.cycles;
      want.moved = together.steps[i].moved;
      want.tiles = 1;
    }
    want.critical_tile = together.steps[i].critical_tile;
    EXPECT_EQ(together.steps[i], want)
        << "step " << i << ", " << want.phase << ": " << together.steps[i].cycles.value
        << " cycles, want " << want.cycles.value;
  }
}

template <class T>
void expect_slowest_of_layers(const GroupCase& c) {
  const GroupRun<T> together = run_groups<T>(c, {0, c.groups()});
  std::vector<GroupRun<T>> alone;
  for (std::int64_t g = 0; g < c.groups(); ++g) alone.push_back(run_groups<T>(c, {g, g + 1}));
  for (std::size_t pass = 0; pass < together.ledgers.size(); ++pass) {
    SCOPED_TRACE(testing::Message() << "pass " << pass);
    std::vector<device::Ledger> ledgers;
    for (const GroupRun<T>& run : alone) ledgers.push_back(run.ledgers[pass]);
    expect_slowest_of(ledgers, together.ledgers[pass]);
  }
}

TEST(Groups, TakeAsLongAsTheSlowestOfThemInEveryStep) {
  for (const GroupCase& c : programs()) {
    SCOPED_TRACE(name_of(c));
    if (c.cut.type == DataType::Half)
      expect_slowest_of_layers<Half>(c);
    else
      expect_slowest_of_layers<float>(c);
  }
}

TEST(Groups, GiveTheSameBitsAndLedgerInBothModesAndForAnyNumberOfThreads) {
  for (const GroupCase& c : programs()) {
    if (c.cut.type == DataType::Half) continue;
    SCOPED_TRACE(name_of(c));
    const auto one = run_groups<float>(c, {0, 3}, {.threads = 1});
    for (const How& how : {How{.mode = device::ExchangeMode::Isolate}, How{.threads = 5}}) {
      const auto other = run_groups<float>(c, {0, 3}, how);
      EXPECT_EQ(one.q, other.q);
      EXPECT_EQ(one.s_grad, other.s_grad);
      EXPECT_EQ(one.gradients, other.gradients);
      EXPECT_EQ(one.ledgers, other.ledgers);
    }
  }
}

// Group 1 alone has more in one corner than its buckets there hold.
GroupCase one_group_spills(bool travelling) {
  GroupCase c = make_case(24, 24, {1, 1}, 3);
  c.cut.partition = {1, 3, 4, 1};
  c.cut.travelling_buckets = travelling;
  c.cut.room = 1.1;
  Matrix<float> corner = sparse::to_dense(random_weights(24, 24, {1, 1}, 0.02, 8));
  for (std::int64_t i = 0; i < 36; ++i) corner(i / 6, i % 6) = float(i + 1);
  c.weights[1] = sparse::from_dense(std::as_const(corner).view(), {1, 1});
  return c;
}

TEST(Groups, AreRightWhenOnlyOneOfThemSpills) {
  for (const bool travelling : {false, true}) {
    GroupCase c = one_group_spills(travelling);
    // Room for the others: the plan is made without the group that spills.
    const sparse::Csr<float> spilling = std::exchange(c.weights[1], c.weights[0]);
    const planner::Plan plan = c.plan(3);
    c.weights[1] = spilling;
    const auto executor = make_executor(2);
    FullyConnected layer(c.problem(3), plan, c.machine(3), device::ExchangeMode::Share, *executor);
    EXPECT_THROW(layer.spill(), Error);  // there are no weights yet
    EXPECT_THROW(layer.travel(), Error);
    EXPECT_THROW(layer.buckets(0), Error);
    EXPECT_THROW(layer.saved_weights(), Error);
    ASSERT_FALSE(layer.set_weights(sparse::checked(c.weights)));
    EXPECT_TRUE(layer.buckets(0).travel.stays_home());
    ASSERT_FALSE(layer.buckets(1).travel.stays_home()) << "the case is there to spill";
    EXPECT_EQ(layer.travel(), layer.buckets(1).travel);
    EXPECT_EQ(layer.spill().moved_blocks, layer.buckets(1).stats.moved_blocks);
    EXPECT_EQ(layer.spill().steps, layer.buckets(1).stats.steps);
    EXPECT_EQ(layer.spill().blocks,
              c.weights[0].blocks() + c.weights[1].blocks() + c.weights[2].blocks());
    const GroupOperands<float> in(c);
    Matrix<float> q(72, 6), s_grad(72, 6);
    std::vector<sparse::Csr<float>> gradients(3);
    layer.forward<float>(in.s.view(), q.view());
    layer.grad_a<float>(in.q_grad.view(), s_grad.view());
    test::grad_w_by_group<float>(layer, in.q_grad.view(), in.s.view(), gradients);
    const verify::Rounding rounding{DataType::Float, DataType::Float, 12};
    for (std::int64_t g = 0; g < 3; ++g) {
      const auto& weights = c.weights[std::size_t(g)];
      const auto of_group = [g](const Matrix<float>& m) {
        return rows_of(m.view(), 24, {g, g + 1});
      };
      EXPECT_TRUE(
          verify::verify_product<float>(weights, of_group(in.s), of_group(q), rounding).ok());
      EXPECT_TRUE(verify::verify_product<float>(sparse::transpose(weights), of_group(in.q_grad),
                                                of_group(s_grad), rounding)
                      .ok());
      EXPECT_TRUE(verify::verify_gradient<float>(weights, gradients[std::size_t(g)],
                                                 of_group(in.q_grad), of_group(in.s), rounding)
                      .ok());
    }
  }
}

// Terms of two estimates of the same cut: only the fullest of more cells is expected to be fuller.
void expect_same_terms(const planner::PassCost& one, const planner::PassCost& many) {
  ASSERT_EQ(one.terms.size(), many.terms.size());
  for (std::size_t i = 0; i < one.terms.size(); ++i) {
    const planner::CostTerm &a = one.terms[i], &b = many.terms[i];
    if (a.name == planner::Term::Multiply)
      EXPECT_NEAR(double(a.cycles.value), double(b.cycles.value), 0.03 * double(a.cycles.value));
    else
      EXPECT_EQ(a, b) << to_string(a.name);
  }
}

// The same full matrix in every group: as many more tiles, not a cycle more, planned or run.
TEST(Groups, ArePlannedAsTheyRun) {
  for (const BlockShape block : {BlockShape{1, 1}, {8, 8}})
    for (const bool travelling : {false, true})
      for (const Dims parts : {Dims{1, 2, 3, 2}, Dims{1, 3, 1, 2}, Dims{1, 1, 2, 1}}) {
        GroupCase c;
        c.cut.batch = 12;
        c.cut.travelling_buckets = travelling;
        c.cut.partition = parts;
        c.weights.assign(3, random_weights(48, 48, block, 1.0, 5));
        SCOPED_TRACE(name_of(c));
        planner::Options options;
        options.available_memory_proportion = 1.0;
        options.constraints = {.x = parts.x,
                               .y = parts.y,
                               .z = parts.z,
                               .grad_w_exchange_buckets = travelling,
                               .use_dense = false};
        const auto plan = [&](std::int64_t groups) {
          Problem problem = c.problem(groups);
          problem.density = 1.0;
          return planner::plan_or_throw(problem, c.machine(groups), options);
        };
        const planner::PlanCost one = plan(1).cost, three = plan(3).cost;
        const auto alone = run_groups<float>(c, {0, 1}), together = run_groups<float>(c, {0, 3});
        for (std::size_t pass = 0; pass < 3; ++pass) {
          expect_same_terms(one.passes[pass], three.passes[pass]);
          EXPECT_EQ(alone.ledgers[pass].total(), together.ledgers[pass].total());
        }
      }
}

TEST(Groups, AMisfitNamesItsGroupAndLeavesAllWeights) {
  GroupCase c = make_case(12, 15, {1, 1}, 2);
  c.cut.room = 1.2;
  const auto executor = make_executor(1);
  FullyConnected layer(c.problem(2), c.plan(2), c.machine(2), device::ExchangeMode::Share,
                       *executor);
  ASSERT_FALSE(layer.set_weights(sparse::checked(c.weights)));
  const auto misfit = layer.set_weights(sparse::checked(std::vector<sparse::Csr<float>>{
      random_weights(12, 15, {1, 1}, 0.1, 1), random_weights(12, 15, {1, 1}, 0.95, 2)}));
  ASSERT_TRUE(misfit);
  EXPECT_EQ(misfit->message.rfind("group 1: ", 0), 0u) << misfit->message;
  EXPECT_EQ(layer.weights(0), c.weights[0]);
  EXPECT_EQ(layer.weights(1), c.weights[1]);
  const GroupOperands<float> in(c);
  Matrix<float> q(24, 6);
  layer.forward<float>(in.s.view(), q.view());
  EXPECT_EQ(q, run_groups<float>(c, {0, 2}).q);
}

TEST(Groups, ChangeOneAtATime) {
  GroupCase c = make_case(12, 15, {1, 1}, 3);
  c.cut.room = 2;
  const auto executor = make_executor(2);
  FullyConnected layer(c.problem(3), c.plan(3), c.machine(3), device::ExchangeMode::Share,
                       *executor);
  ASSERT_FALSE(layer.set_weights(sparse::checked(c.weights)));
  const auto change = sparse::difference(c.weights[1], c.weights[0]);
  ASSERT_FALSE(layer.update_weights(change, 1));
  EXPECT_EQ(layer.weights(0), c.weights[0]);
  EXPECT_EQ(layer.weights(2), c.weights[2]);
  layer.set_values(c.weights[0].values, 1);  // the pattern of group 0 by now
  EXPECT_EQ(layer.weights(1), c.weights[0]);
  const GroupOperands<float> in(c);
  Matrix<float> q(36, 6);
  layer.forward<float>(in.s.view(), q.view());
  for (std::int64_t g = 0; g < 3; ++g)
    EXPECT_TRUE(verify::verify_product<float>(layer.weights(g),
                                              rows_of(in.s.view(), 15, {g, g + 1}),
                                              rows_of(std::as_const(q).view(), 12, {g, g + 1}),
                                              {DataType::Float, DataType::Float, 12})
                    .ok());
}

TEST(Groups, AreRefusedWhereTheyDoNotAgreeWithThePlan) {
  GroupCase c = make_case(12, 15, {1, 1}, 2);
  const auto executor = make_executor(1);
  const auto make = [&](std::int64_t in_problem, std::int64_t in_plan) {
    return FullyConnected(c.problem(in_problem), c.plan(in_plan), c.machine(2),
                          device::ExchangeMode::Share, *executor);
  };
  EXPECT_THROW(make(2, 1), Error);
  EXPECT_THROW(make(1, 2), Error);
  FullyConnected layer = make(2, 2);
  EXPECT_THROW(layer.set_weights(c.weights[0]), Error) << "one matrix for two groups";
  ASSERT_FALSE(layer.set_weights(sparse::checked(c.weights)));
  EXPECT_THROW(layer.buckets(2), Error);
  EXPECT_THROW(layer.weights(-1), Error);
  const GroupOperands<float> in(c);
  Matrix<float> q(24, 6), of_one_group(12, 6);
  EXPECT_THROW(layer.forward<float>(in.s.view(), of_one_group.view()), Error);
  std::vector<float> of_one(c.weights[0].values.size());
  EXPECT_THROW(layer.grad_w<float>(in.q_grad.view(), in.s.view(), of_one), Error);
  EXPECT_NO_THROW(layer.forward<float>(in.s.view(), q.view()));
}

}  // namespace
}  // namespace tessera::runtime
