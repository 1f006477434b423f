#include "tessera/train/machine_layer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/layers/backends.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/train/training_case.hpp"
#include "tessera/train/internal/half_operands.hpp"
#include "tessera/train/machine_step.hpp"
#include "tessera/train/modelled_machine.hpp"
#include "tessera/train/network.hpp"

namespace tessera::train {
namespace {

constexpr std::int64_t kOutputs = 22, kInputs = 26, kBatch = 12;

device::Machine machine_of_7() {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 7;
  return machine;
}

// A layer of a network, and what its machine adds.
struct OneLayer {
  std::unique_ptr<Executor> executor = make_executor(2);
  Problem problem = test::problem_of(DataType::Float, {1, kOutputs, kInputs, kBatch}, {1, 1});
  MadeLayer made;
  std::vector<sparse::Csr<float>> weights = test::random_weights(problem, 0.4, 3);

  explicit OneLayer(const device::Machine& machine = machine_of_7())
      : made(machine_layer(test::OnTiles::make(problem, *executor), machine, *executor)) {
    EXPECT_FALSE(made.layer->set_weights(weights[0]));
  }
};

// Operands that half holds exactly: only gradients are scaled.
TEST(HalfOperands, AreRoundedAndGradientsScaled) {
  const auto executor = make_executor(2);
  const Problem problem = test::problem_of(DataType::Half, {1, kOutputs, kInputs, kBatch}, {1, 1});
  runtime::FullyConnected layer = test::OnTiles::make(problem, *executor);
  const sparse::Csr<float> weights = test::random_weights(problem, 0.4, 3)[0];
  ASSERT_FALSE(layer.set_weights(weights));
  const Matrix<Half> s = random_matrix<Half>(kInputs, kBatch, 1),
                     q_grad = random_matrix<Half>(kOutputs, kBatch, 2);
  constexpr float kTiny = 0x1p-20f;  // most gradients are then below the least half
  Matrix<float> s_float(kInputs, kBatch), tiny(kOutputs, kBatch);
  for (std::size_t i = 0; i < s.elements().size(); ++i)
    s_float.elements()[i] = float(s.elements()[i]);
  for (std::size_t i = 0; i < q_grad.elements().size(); ++i)
    tiny.elements()[i] = float(q_grad.elements()[i]) * kTiny;
  Matrix<Half> q_plain(kOutputs, kBatch), s_grad_plain(kInputs, kBatch);
  std::vector<float> gradients(weights.values.size()), gradients_plain = gradients;
  layer.forward<Half>(s.view(), q_plain.view());
  layer.grad_a<Half>(q_grad.view(), s_grad_plain.view());
  layer.grad_w<Half>(q_grad.view(), s.view(), gradients_plain);
  Matrix<float> q(kOutputs, kBatch), s_grad(kInputs, kBatch);
  internal::run_in_half(layer, Pass::Fwd, {.in = s_float.view(), .out = q.view()});
  internal::run_in_half(layer, Pass::GradA, {.in = tiny.view(), .out = s_grad.view()});
  internal::run_in_half(layer, Pass::GradW,
                        {.in = tiny.view(), .in_s = s_float.view(), .gradients = gradients});
  for (std::size_t i = 0; i < q.elements().size(); ++i)
    EXPECT_EQ(q.elements()[i], float(q_plain.elements()[i]));
  for (std::size_t i = 0; i < s_grad.elements().size(); ++i) {
    const float wanted = float(s_grad_plain.elements()[i]);
    EXPECT_NEAR(s_grad.elements()[i] / kTiny, wanted, 1e-3 * std::abs(wanted) + 1e-3);
  }
  for (std::size_t i = 0; i < gradients.size(); ++i)
    EXPECT_NEAR(gradients[i] / kTiny, gradients_plain[i],
                1e-3 * std::abs(gradients_plain[i]) + 1e-3);
}

TEST(MachineLayer, CountsTheBytesOfPatternUpdates) {
  OneLayer one;
  layer::Layer& layer = *one.made.layer;
  MachineLayer& machine = *one.made.machine;
  EXPECT_EQ(machine.update_traffic(), UpdateTraffic{});
  const sparse::BlockAt first{0, one.weights[0].col[0]};
  std::vector<UpdateTraffic> traffic;
  for (const sparse::PatternChange& change :
       {sparse::PatternChange{.removed = {first}, .added = {}},
        {.removed = {}, .added = {first}}}) {
    machine.keep_words();
    layer.commit(layer.prepare_update(change));
    machine.count_update();
    traffic.push_back(machine.update_traffic());
  }
  EXPECT_EQ(traffic[1].updates, 2);
  EXPECT_GT(traffic[0].words, Bytes(0));
  EXPECT_GT(traffic[0].values, Bytes(0));
  EXPECT_LT(traffic[0].values, traffic[0].read) << "most buckets keep their words";
  EXPECT_EQ(traffic[1].read, traffic[0].read * 2);
  EXPECT_EQ(traffic[0].read.value % machine.values_per_tile(), 0);
}

// A network of one layer on a machine.
TEST(MachineLayer, TakesTheChangeThatWasPreparedLastAndCountsWhatChanges) {
  const auto executor = make_executor(2);
  const MakeLayer make = [&](const Problem& problem) {
    return machine_layer(test::OnTiles::make(problem, *executor), machine_of_7(), *executor);
  };
  const planner::NetworkSpec spec{
      .layers = {{.outputs = kOutputs, .inputs = kInputs, .density = 0.4}}, .batch = kBatch};
  Network network({.spec = spec}, make, *executor);
  const sparse::Csr<float> before = network.weights(0);
  const auto commit = [&](layer::PreparedUpdate update) {
    std::vector<layer::PreparedUpdate> updates;
    updates.push_back(std::move(update));
    network.commit(std::move(updates));
  };
  const UpdateTraffic& traffic = network.state(0).made.machine->update_traffic();
  commit(network.prepare(0, {}));
  EXPECT_EQ(traffic, UpdateTraffic{}) << "nothing has changed";
  const sparse::PatternChange change{.removed = {{0, before.col[0]}}, .added = {}},
      other{.removed = {{0, before.col[1]}}, .added = {}};
  layer::PreparedUpdate stale = network.prepare(0, change), update = network.prepare(0, other);
  EXPECT_EQ(update.placed().size(), 1u);
  EXPECT_THAT(test::refusal([&] { commit(std::move(stale)); }),
              testing::HasSubstr("call prepare_update of this layer again"));
  EXPECT_EQ(network.weights(0), before) << "until the commit";
  commit(std::move(update));
  EXPECT_EQ(network.state(0).gradients.size(), before.values.size() - 1);
  EXPECT_EQ(network.weights(0), sparse::with_change(before, other));
  EXPECT_EQ(traffic.updates, 1);
}

// Sums of small whole numbers are exact, so many scores are equal on both sides.
TEST(MachineLayer, SearchesTheLargestGradientsThatThisComputerFinds) {
  OneLayer one;
  MachineLayer& layer = *one.made.machine;
  Matrix<float> s = random_matrix<float>(kInputs, kBatch, 1),
                q_grad = random_matrix<float>(kOutputs, kBatch, 2);
  for (Matrix<float>* m : {&s, &q_grad})
    for (float& v : m->elements()) v = std::round(3 * v);
  const GradientBatch batch{q_grad.view(), s.view()};
  for (const BlockScore pool : {BlockScore::Sum, BlockScore::Max, BlockScore::Mean})
    for (const std::int64_t k : {0, 1, 50, 300})
      EXPECT_EQ(layer.largest_gradients(one.weights[0], k, pool, batch),
                exact_gradients({one.weights[0], {&batch, 1}, k, pool}, *one.executor));
  const SearchFigures& figures = layer.search_figures();
  EXPECT_EQ(figures.searches, 9);
  EXPECT_GE(figures.runs, 9);
  EXPECT_GT(figures.gradient, Cycles(0));
  EXPECT_GT(figures.selection, Cycles(0));
  EXPECT_GT(figures.upload, Bytes(0));
  EXPECT_GT(figures.download, Bytes(0));
  device::Machine small = machine_of_7();
  small.tile_memory = Bytes(1024);
  small.tiles = 1;
  const OneLayer in_vain(small);
  EXPECT_THROW(in_vain.made.machine->largest_gradients(one.weights[0], 5, BlockScore::Sum, batch),
               Error);
}

TEST(MachineStep, NumbersTheLayersFromOne) {
  const auto executor = make_executor(2);
  const ModelledMachine machine("gc200");
  const DataSet data = test::small_data();
  NetworkOptions shape = test::small_network();
  shape.sizes = {20, 30, 3};
  Network network(shape, machine.layers(*executor), *executor);
  Trainer trainer(network, data, test::small_options(Static{}));
  trainer.step();
  const MachineStep step = machine_step(trainer, machine).value();
  ASSERT_EQ(step.optimisers.size(), 2U);
  EXPECT_EQ(step.optimisers[0].layer, 1);
  EXPECT_EQ(step.optimisers[1].layer, 2);
}

TEST(MachineStep, HasTheCyclesOfALayerThatRunsAlone) {
  const auto executor = make_executor(2);
  const ModelledMachine machine("gc200");
  const DataSet data = test::small_data();
  Network network(test::small_network(), machine.layers(*executor), *executor);
  Trainer trainer(network, data, test::small_options(Static{}));
  trainer.step();
  const Problem problem = network.problems()[0];
  runtime::FullyConnected alone(
      problem, planner::plan_or_throw(problem, machine.machine(), planner::sparse_options()),
      machine.machine(), device::ExchangeMode::Share, *executor);
  ASSERT_FALSE(alone.set_weights(network.weights(0)));
  const auto s = random_matrix<float>(problem.size.y, problem.size.z, 1);
  const auto q_grad = random_matrix<float>(problem.size.x, problem.size.z, 2);
  Matrix<float> q(problem.size.x, problem.size.z);
  std::vector<float> gradients(network.weights(0).values.size());
  const Cycles fwd = alone.forward<float>(s.view(), q.view()).total();
  const Cycles grad_w = alone.grad_w<float>(q_grad.view(), s.view(), gradients).total();
  const MachineStep step = machine_step(trainer, machine).value();
  int compared = 0;
  for (const StepPass& pass : step.passes)
    if (pass.layer == 1 && pass.pass != Pass::GradA) {
      EXPECT_EQ(pass.cycles, pass.pass == Pass::Fwd ? fwd : grad_w);
      ++compared;
    }
  EXPECT_EQ(compared, 2);
}

}  // namespace
}  // namespace tessera::train
