#include "tessera/train/machine_layer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/layers/backends.hpp"
#include "tessera/train/layer.hpp"

namespace tessera::train {
namespace {

static_assert(TrainableLayer<MachineLayer>);
static_assert(TrainableLayer<host::HostLayer>);

constexpr std::int64_t kOutputs = 22, kInputs = 26, kBatch = 12;

// The layer that a Network trains beside the one of the machine alone.
struct TwoLayers {
  std::unique_ptr<Executor> executor = make_executor(2);
  Problem problem = test::problem_of(DataType::Float, {1, kOutputs, kInputs, kBatch}, {1, 1});
  MachineLayer layer{test::OnTiles::make(problem, *executor), *executor};
  runtime::FullyConnected plain = test::OnTiles::make(problem, *executor);
  std::vector<sparse::Csr<float>> weights = test::random_weights(problem, 0.4, 3);
  Matrix<float> s = random_matrix<float>(kInputs, kBatch, 1),
                q_grad = random_matrix<float>(kOutputs, kBatch, 2);

  TwoLayers() {
    EXPECT_FALSE(layer.set_weights(weights[0]));
    EXPECT_FALSE(plain.set_weights(weights[0]));
  }
};

TEST(MachineLayer, HasTheBitsOfLoopsAfterThePasses) {
  TwoLayers two;
  const Matrix<float> bias = random_matrix<float>(1, kOutputs, 4);
  Matrix<float> q(kOutputs, kBatch), q_plain = q, s_grad(kInputs, kBatch), s_grad_plain = s_grad;
  two.plain.forward<float>(two.s.view(), q_plain.view());
  two.plain.grad_a<float>(two.q_grad.view(), s_grad_plain.view());
  std::int64_t negative = 0;
  for (std::int64_t r = 0; r < kOutputs; ++r)
    for (std::int64_t c = 0; c < kBatch; ++c) {
      float& sum = q_plain(r, c);
      sum += bias(0, r);
      negative += sum < 0;
      sum = sum < 0 ? 0 : sum;
    }
  EXPECT_GT(negative, 0);
  for (std::int64_t r = 0; r < kInputs; ++r)
    for (std::int64_t c = 0; c < kBatch; ++c)
      if (!(two.s(r, c) > 0)) s_grad_plain(r, c) = 0;
  two.layer.forward<float>(two.s.view(), q.view(),
                           {.bias = bias.elements(), .activation = host::Activation::Relu});
  two.layer.grad_a<float>(two.q_grad.view(), s_grad.view(), {.where_positive = two.s.view()});
  EXPECT_EQ(q, q_plain);
  EXPECT_EQ(s_grad, s_grad_plain);
}

// The same passes in half, of operands that half holds exactly: only gradients are scaled.
TEST(MachineLayer, RoundsTheOperandsOfALayerInHalf) {
  const auto executor = make_executor(2);
  const Problem problem = test::problem_of(DataType::Half, {1, kOutputs, kInputs, kBatch}, {1, 1});
  MachineLayer layer{test::OnTiles::make(problem, *executor), *executor};
  runtime::FullyConnected plain = test::OnTiles::make(problem, *executor);
  const sparse::Csr<float> weights = test::random_weights(problem, 0.4, 3)[0];
  ASSERT_FALSE(layer.set_weights(weights));
  ASSERT_FALSE(plain.set_weights(weights));
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
  plain.forward<Half>(s.view(), q_plain.view());
  plain.grad_a<Half>(q_grad.view(), s_grad_plain.view());
  plain.grad_w<Half>(q_grad.view(), s.view(), gradients_plain);
  Matrix<float> q(kOutputs, kBatch), s_grad(kInputs, kBatch);
  layer.forward<float>(s_float.view(), q.view());
  layer.grad_a<float>(tiny.view(), s_grad.view());
  layer.grad_w<float>(tiny.view(), s_float.view(), gradients);
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

TEST(MachineLayer, KeepsTheModelledStepsOfEachPass) {
  TwoLayers two;
  EXPECT_EQ(two.layer.last_run(Pass::Fwd).total(), Cycles(0));
  Matrix<float> q(kOutputs, kBatch), s_grad(kInputs, kBatch);
  std::vector<float> gradients(two.weights[0].values.size()), own = gradients;
  two.layer.forward<float>(two.s.view(), q.view());
  two.layer.grad_a<float>(two.q_grad.view(), s_grad.view());
  two.layer.grad_w<float>(two.q_grad.view(), two.s.view(), gradients);
  EXPECT_EQ(two.layer.last_run(Pass::Fwd), two.plain.forward<float>(two.s.view(), q.view()));
  EXPECT_EQ(two.layer.last_run(Pass::GradA),
            two.plain.grad_a<float>(two.q_grad.view(), s_grad.view()));
  EXPECT_EQ(two.layer.last_run(Pass::GradW),
            two.plain.grad_w<float>(two.q_grad.view(), two.s.view(), own));
  EXPECT_EQ(gradients, own);
  EXPECT_GT(two.layer.pattern_bytes(), Bytes(0));
  EXPECT_EQ(two.layer.pattern_bytes(), two.plain.pattern_bytes());
}

TEST(MachineLayer, ChangesValuesInPlaceOrNotAtAll) {
  TwoLayers two;
  std::vector<float> values = two.weights[0].values;
  for (float& v : values) v = 2 * v - 1;
  two.layer.change_values([](std::span<float> part, std::int64_t first) {
    EXPECT_EQ(first, 0);
    for (float& v : part) v = 2 * v - 1;
  });
  EXPECT_EQ(two.layer.weights().values, values);
  two.plain.set_values(values);
  Matrix<float> q(kOutputs, kBatch), q_plain = q;
  two.layer.forward<float>(two.s.view(), q.view());
  two.plain.forward<float>(two.s.view(), q_plain.view());
  EXPECT_EQ(q, q_plain);
  const auto fails = [](std::span<float> part, std::int64_t) {
    part[0] = 99;
    throw std::runtime_error("no");
  };
  EXPECT_THROW(two.layer.change_values(fails), std::runtime_error);
  EXPECT_EQ(two.layer.weights().values, values);
}

TEST(MachineLayer, CountsTheBytesOfPatternUpdates) {
  TwoLayers two;
  EXPECT_EQ(two.layer.update_traffic(), UpdateTraffic{});
  const sparse::Csr<float>& before = two.weights[0];
  MachineLayer same{test::OnTiles::make(two.problem, *two.executor), *two.executor};
  MachineLayer next{test::OnTiles::make(two.problem, *two.executor), *two.executor};
  ASSERT_FALSE(same.set_weights(before));
  ASSERT_FALSE(next.set_weights(
      sparse::with_change(before, {.removed = {{0, before.col[0]}}, .added = {}})));
  same.count_update_of(two.layer);
  next.count_update_of(same);
  const UpdateTraffic &first = same.update_traffic(), &both = next.update_traffic();
  EXPECT_EQ(first.updates, 1);
  EXPECT_EQ(first.values, Bytes(0)) << "no bucket differs";
  EXPECT_EQ(both.updates, 2);
  EXPECT_GT(both.values, Bytes(0));
  EXPECT_GT(both.words, first.words * 2);
  EXPECT_LT(both.values, first.read) << "most buckets keep their words";
  EXPECT_EQ(both.read, first.read * 2);
  EXPECT_EQ(first.read.value % next.values_per_tile(), 0);
}

// Sums of small whole numbers are exact, so many scores are equal on both sides.
TEST(MachineLayer, SearchesTheLargestGradientsThatThisComputerFinds) {
  TwoLayers two;
  EXPECT_FALSE(two.layer.searches_on_machine());
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 7;
  two.layer.search_on(two.problem, machine);
  for (Matrix<float>* m : {&two.s, &two.q_grad})
    for (float& v : m->elements()) v = std::round(3 * v);
  const GradientBatch batch{two.q_grad.view(), two.s.view()};
  for (const Pool pool : {Pool::Sum, Pool::Max, Pool::Mean})
    for (const std::int64_t k : {0, 1, 50, 300})
      EXPECT_EQ(two.layer.largest_gradients(two.weights[0], k, pool, batch),
                largest_gradients(two.weights[0], {&batch, 1}, k, pool, *two.executor));
  const SearchFigures& figures = two.layer.search_figures();
  EXPECT_EQ(figures.searches, 9);
  EXPECT_GE(figures.runs, 9);
  EXPECT_GT(figures.gradient, Cycles(0));
  EXPECT_GT(figures.selection, Cycles(0));
  EXPECT_GT(figures.upload, Bytes(0));
  EXPECT_GT(figures.download, Bytes(0));
  machine.tile_memory = Bytes(1024);
  machine.tiles = 1;
  two.layer.search_on(two.problem, machine);
  EXPECT_THROW(two.layer.largest_gradients(two.weights[0], 5, Pool::Sum, batch), Error);
}

}  // namespace
}  // namespace tessera::train
