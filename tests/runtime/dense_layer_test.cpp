#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/batches.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/verify/verify.hpp"

// FullyConnected with a plan that multiplies all of R without buckets.
namespace tessera::runtime {
namespace {

using ::testing::HasSubstr;

struct DenseLayerCase {
  Problem problem;
  device::Machine machine = device::machine_preset("gc200");
  std::vector<sparse::Csr<float>> weights;  // of each group

  planner::Plan plan(bool dense = true) const {
    planner::Options options;
    options.constraints.use_dense = dense;
    return planner::plan_or_throw(problem, machine, options);
  }
};

DenseLayerCase make_case(Dims size, BlockShape block, DataType type, std::uint64_t seed = 1) {
  DenseLayerCase c;
  c.problem = {.size = size,
               .block = block,
               .density = 0.4,
               .data_type = type,
               .grad_a = true,
               .grad_w = true};
  c.machine.tiles = 24;
  const Dims whole = c.problem.size_in_blocks();
  for (std::int64_t g = 0; g < size.g; ++g)
    c.weights.push_back(
        sparse::random_pattern(whole.x, whole.y, block, 0.4, seed + std::uint64_t(g)));
  for (sparse::Csr<float>& matrix : c.weights) {
    Random random(seed);
    for (float& v : matrix.values) v = float(random.below(5)) - 2.0f;  // sums are exact
  }
  return c;
}

template <class T>
Matrix<T> small_numbers(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Random random(seed);
  Matrix<T> m(rows, cols);
  for (T& v : m.elements()) v = T(float(random.below(5)) - 2.0f);
  return m;
}

template <class T>
struct Passes {
  Matrix<T> q, s_grad;
  std::vector<float> gradients;
  std::vector<device::Ledger> ledgers;
};

template <class T>
Passes<T> run(const DenseLayerCase& c, FullyConnected& layer, const PassOptions& options = {}) {
  const auto [g, x, y, z] = c.problem.size;
  const auto s = small_numbers<T>(g * y, z, 2), q_grad = small_numbers<T>(g * x, z, 3);
  Passes<T> p{Matrix<T>(g * x, z), Matrix<T>(g * y, z),
              std::vector<float>(std::size_t(layer.values())), std::vector<device::Ledger>(3)};
  EXPECT_TRUE(layer.forward<T>(s.view(), p.q.view(), options, p.ledgers[0]));
  EXPECT_TRUE(layer.grad_a<T>(q_grad.view(), p.s_grad.view(), options, p.ledgers[1]));
  EXPECT_TRUE(
      layer.grad_w<T>(q_grad.view(), s.view(), std::span(p.gradients), options, p.ledgers[2]));
  return p;
}

template <class T>
bool same(const Matrix<T>& a, const Matrix<T>& b) {
  return std::ranges::equal(a.elements(), b.elements(),
                            [](T p, T q) { return float(p) == float(q); });
}

template <class T>
class DenseLayerOf : public testing::Test {};
using Types = testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(DenseLayerOf, Types);

// A view of a matrix with rows and columns exchanged.
template <class T>
MatrixView<T> turned(Matrix<std::remove_const_t<T>>& m) {
  return {m.elements().data(), m.cols(), m.rows(), 1, m.cols()};
}

TYPED_TEST(DenseLayerOf, TakesOperandsAndResultsWhoseRowsAreApart) {
  using T = TypeParam;
  const DenseLayerCase c = make_case({1, 37, 50, 9}, {1, 1}, data_type_of<T>());
  const auto executor = make_executor(1);
  FullyConnected layer(c.problem, c.plan(), c.machine, device::ExchangeMode::Share, *executor);
  ASSERT_FALSE(layer.set_weights(sparse::checked(c.weights)));
  const Passes<T> expected = run<T>(c, layer);
  const auto s = small_numbers<T>(50, 9, 2), q_grad = small_numbers<T>(37, 9, 3);
  Matrix<T> s_turned(9, 50), q_grad_turned(9, 37), q(9, 37), s_grad(9, 50);
  for (std::int64_t z = 0; z < 9; ++z) {
    for (std::int64_t y = 0; y < 50; ++y) s_turned(z, y) = s(y, z);
    for (std::int64_t x = 0; x < 37; ++x) q_grad_turned(z, x) = q_grad(x, z);
  }
  std::vector<float> gradients(expected.gradients.size());
  device::Ledger ledger;
  ASSERT_TRUE(layer.forward<T>(turned<const T>(s_turned), turned<T>(q), {}, ledger));
  ASSERT_TRUE(layer.grad_a<T>(turned<const T>(q_grad_turned), turned<T>(s_grad), {}, ledger));
  ASSERT_TRUE(layer.grad_w<T>(turned<const T>(q_grad_turned), turned<const T>(s_turned),
                              std::span(gradients), {}, ledger));
  for (std::int64_t z = 0; z < 9; ++z) {
    for (std::int64_t x = 0; x < 37; ++x) EXPECT_EQ(float(q(z, x)), float(expected.q(x, z)));
    for (std::int64_t y = 0; y < 50; ++y)
      EXPECT_EQ(float(s_grad(z, y)), float(expected.s_grad(y, z)));
  }
  EXPECT_EQ(gradients, expected.gradients);
}

// Sums of small whole numbers are exact, so the order of sums does not matter.
TYPED_TEST(DenseLayerOf, HasTheResultsOfTheSameLayerInBuckets) {
  using T = TypeParam;
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}, BlockShape{16, 16}})
    for (const std::int64_t groups : {1, 2}) {
      const DenseLayerCase c = make_case({groups, 37, 50, 9}, block, data_type_of<T>());
      const auto executor = make_executor(ExecutorKind::Threads, 2);
      const planner::Plan plan = c.plan();
      ASSERT_TRUE(plan.dense);
      FullyConnected dense(c.problem, plan, c.machine, device::ExchangeMode::Share, *executor);
      FullyConnected isolated(c.problem, plan, c.machine, device::ExchangeMode::Isolate, *executor);
      FullyConnected sparse(c.problem, c.plan(/*dense=*/false), c.machine,
                            device::ExchangeMode::Share, *executor);
      ASSERT_FALSE(dense.set_weights(sparse::checked(c.weights)));
      ASSERT_FALSE(isolated.set_weights(sparse::checked(c.weights)));
      ASSERT_FALSE(sparse.set_weights(sparse::checked(c.weights)));
      const Passes<T> d = run<T>(c, dense), i = run<T>(c, isolated), s = run<T>(c, sparse);
      EXPECT_TRUE(same(d.q, s.q));
      EXPECT_TRUE(same(d.s_grad, s.s_grad));
      EXPECT_EQ(d.gradients, s.gradients);
      EXPECT_TRUE(same(d.q, i.q));
      EXPECT_EQ(d.gradients, i.gradients);
      EXPECT_EQ(d.ledgers, i.ledgers);
    }
}

TEST(DenseLayer, RunsForTheCyclesAndInTheMemoryThatWerePlanned) {
  DenseLayerCase c = make_case({1, 512, 768, 64}, {16, 16}, DataType::Half);
  c.machine = device::machine_preset("gc200");
  const planner::Plan plan = c.plan();
  const auto executor = make_executor(ExecutorKind::Threads, 2);
  FullyConnected layer(c.problem, plan, c.machine, device::ExchangeMode::Share, *executor);
  ASSERT_FALSE(layer.set_weights(sparse::checked(c.weights)));
  const Passes<Half> p = run<Half>(c, layer);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(p.ledgers[i].total(), plan.cost.passes[i].cycles()) << i;
  EXPECT_LE(layer.high_water(), plan.cost.temp + plan.cost.resident);
  EXPECT_EQ(layer.pattern_bytes(), Bytes(512 * 768 * 2));
  EXPECT_EQ(layer.spill().moved_blocks, 0);
  EXPECT_EQ(layer.travel().steps(), 0);
}

TEST(DenseLayer, TakesChangesOfThePatternAndNewValues) {
  const DenseLayerCase c = make_case({1, 32, 48, 8}, {4, 4}, DataType::Float);
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  FullyConnected layer(c.problem, c.plan(), c.machine, device::ExchangeMode::Share, *executor);
  ASSERT_FALSE(layer.set_weights(sparse::checked(c.weights)));
  const sparse::Csr<float> other = sparse::random_pattern(32, 48, {4, 4}, 0.3, 9);
  const sparse::PatternChange change =
      sparse::difference(sparse::checked(c.weights[0]), sparse::checked(other));
  ASSERT_FALSE(layer.update_weights(change));
  EXPECT_EQ(layer.weights().col, other.col);
  const std::vector<float> values(std::size_t(layer.values()), 2);
  layer.set_values(values);
  FullyConnected fresh(c.problem, c.plan(), c.machine, device::ExchangeMode::Share, *executor);
  ASSERT_FALSE(fresh.set_weights(layer.weights()));
  EXPECT_TRUE(same(run<float>(c, layer).q, run<float>(c, fresh).q));
}

TEST(DenseLayer, ChecksItsResultsAndFindsFaultsOfMemory) {
  const DenseLayerCase c = make_case({1, 64, 64, 16}, {4, 4}, DataType::Float);
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  FullyConnected layer(c.problem, c.plan(), c.machine, device::ExchangeMode::Isolate, *executor);
  ASSERT_FALSE(layer.set_weights(sparse::checked(c.weights)));
  verify::Checksums checksums;
  run<float>(c, layer, {.self_check = &checksums});
  EXPECT_GT(checksums.compared, 0);
  int struck = 0, found = 0;
  for (std::int64_t step = 0; step < 4; ++step)
    for (std::int64_t byte = 3; byte < 2000; byte += 200) {
      std::optional<device::Struck> place;
      TilePass options;
      options.pass.self_check = &checksums;
      options.tiles.fault = device::Fault{.tile = TileId(1), .step = step, .bit = 8 * byte + 6};
      options.tiles.struck = &place;
      try {
        run<float>(c, layer, options);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::CheckFailed);
        ++found;
      }
      struck += place.has_value();
    }
  EXPECT_GT(struck, 0);
  EXPECT_GT(found, 0);
}

TEST(DenseLayer, RunsOtherBatchesAndStops) {
  const DenseLayerCase c = make_case({1, 16, 16, 8}, {1, 1}, DataType::Float);
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  FullyConnected layer(c.problem, c.plan(), c.machine, device::ExchangeMode::Share, *executor);
  ASSERT_FALSE(layer.set_weights(sparse::checked(c.weights)));
  const auto s = small_numbers<float>(16, 13, 4);
  Matrix<float> q(16, 13), part(16, 8), in(16, 8);
  forward_batch<float>(layer, s.view(), q.view());
  for (const std::int64_t first : {0, 8}) {
    const std::int64_t columns = std::min<std::int64_t>(8, 13 - first);
    for (std::int64_t row = 0; row < 16; ++row)
      for (std::int64_t z = 0; z < columns; ++z) in(row, z) = s(row, first + z);
    layer.forward<float>(std::as_const(in).view(), part.view());
    for (std::int64_t row = 0; row < 16; ++row)
      for (std::int64_t z = 0; z < columns; ++z) EXPECT_EQ(q(row, first + z), part(row, z));
  }
  std::stop_source stop;
  stop.request_stop();
  device::Ledger ledger;
  EXPECT_FALSE(layer.forward<float>(s.view().sub({0, 16}, {0, 8}), part.view(),
                                    {.stop = stop.get_token()}, ledger));
}

TEST(DenseLayer, SaysThatItHasNoBuckets) {
  const DenseLayerCase c = make_case({1, 16, 16, 8}, {1, 1}, DataType::Float);
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  FullyConnected layer(c.problem, c.plan(), c.machine, device::ExchangeMode::Share, *executor);
  EXPECT_THAT(test::refusal([&] { run<float>(c, layer); }), HasSubstr("call set_weights first"));
  ASSERT_FALSE(layer.set_weights(sparse::checked(c.weights)));
  EXPECT_THAT(test::refusal([&] { layer.buckets(); }), HasSubstr("has no buckets"));
  EXPECT_THAT(test::refusal([&] { layer.encoded_values<float>(); }), HasSubstr("has no buckets"));
  EXPECT_THAT(test::refusal([&] { layer.load_cost(); }), HasSubstr("has no buckets"));
  EXPECT_THAT(test::refusal([&] { tile_grid(c.problem, c.plan(), c.machine); }),
              HasSubstr("no grid of buckets"));
  EXPECT_THAT(test::refusal([&] { layer.weights(1); }),
              HasSubstr("group is 1; it must be in 0..0"));
  Problem other = c.problem;
  other.size.x = 17;
  EXPECT_THAT(test::refusal([&] {
                FullyConnected(other, c.plan(), c.machine, device::ExchangeMode::Share, *executor);
              }),
              HasSubstr("another layer"));
}

}  // namespace
}  // namespace tessera::runtime
