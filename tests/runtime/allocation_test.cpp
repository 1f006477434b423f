#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/runtime/layer_case.hpp"
#include "tessera/tests/runtime/two_layouts.hpp"
#include "tessera/tests/support/failing_allocations.hpp"

namespace tessera::runtime {
namespace {

std::vector<LayerCase> allocation_cases() {
  LayerCase element;
  element.weights = random_weights(30, 42, {1, 1}, 0.3, 4);
  element.partition = {1, 3, 3, 2};
  element.batch = 9;  // padded, so operands are copied
  LayerCase block;
  block.weights = random_weights(24, 32, {4, 4}, 0.4, 5);
  block.partition = {1, 2, 4, 1};
  block.batch = 12;
  LayerCase dense;  // other blocks than the layer's
  dense.weights = random_weights(32, 32, {1, 1}, 0.5, 6);
  dense.partition = {1, 2, 2, 1};
  dense.batch = 8;
  dense.dense = true;
  std::vector<LayerCase> all;
  for (LayerCase c : {element, block, dense})
    for (const bool travelling : {false, true})
      for (const bool spills : {false, true})
        for (const DataType type : {DataType::Float, DataType::Half}) {
          c.travelling_buckets = travelling;
          c.force_spills = spills;
          c.type = type;
          all.push_back(c);
        }
  return all;
}

// Allocations of one call of each pass, after one call of each.
template <class T>
std::vector<std::int64_t> second_calls(FullyConnected& layer, const sparse::Csr<float>& weights) {
  const std::int64_t batch = layer.batch();
  const auto s = random_matrix<T>(weights.cols, batch, 1);
  const auto q_grad = random_matrix<T>(weights.rows, batch, 2);
  Matrix<T> q(weights.rows, batch), s_grad(weights.cols, batch);
  std::vector<float> gradient(weights.values.size());
  device::Ledger ledger;
  std::vector<std::int64_t> counts(3);
  const auto count = [&](int pass, auto&& call) {
    const std::int64_t before = test::allocations();
    const bool finished = call();
    counts[std::size_t(pass)] = test::allocations() - before;
    EXPECT_TRUE(finished);
  };
  for (int call = 0; call < 2; ++call) {
    count(0, [&] { return layer.forward<T>(s.view(), q.view(), {}, ledger); });
    count(1, [&] { return layer.grad_a<T>(q_grad.view(), s_grad.view(), {}, ledger); });
    count(2, [&] { return layer.grad_w<T>(q_grad.view(), s.view(), gradient, {}, ledger); });
  }
  return counts;
}

TEST(Allocation, ThereIsNoneInASecondCallOfAnyPass) {
  const std::vector<std::int64_t> none(3, 0);
  for (const LayerCase& c : allocation_cases())
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(c.name());
      const auto executor = make_executor(ExecutorKind::Threads, threads);
      FullyConnected layer(c.problem(), c.plan(), c.machine(), device::ExchangeMode::Share,
                           *executor);
      ASSERT_FALSE(layer.set_weights(c.weights, {.force_spills = c.force_spills}));
      EXPECT_EQ(c.type == DataType::Half ? second_calls<Half>(layer, c.weights)
                                         : second_calls<float>(layer, c.weights),
                none);
    }
}

TEST(Allocation, ThereIsNoneInASecondCallWhereGradAHasALayoutOfItsOwn) {
  const std::vector<std::int64_t> none(3, 0);
  const auto executor = make_executor(ExecutorKind::Threads, 2);
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{8, 4}})
    for (const bool grad_w_there : {false, true}) {
      SCOPED_TRACE(testing::Message() << block.rows << (grad_w_there ? ", with GradW" : ""));
      const TwoLayouts two = two_layouts(
          {.size = {1, 64, 96, 8}, .block = block, .density = 0.2, .data_type = DataType::Float},
          grad_w_there, 24);
      FullyConnected layer(two.problem, two.plan, two.machine, device::ExchangeMode::Share,
                           *executor);
      const auto weights = sparse::random_pattern(64, 96, block, 0.2, 3);
      ASSERT_FALSE(layer.set_weights(weights));
      EXPECT_EQ(second_calls<float>(layer, weights), none);
    }
}

// Allocations of a second call of set_values.
std::int64_t of_new_values(FullyConnected& layer, std::vector<float> values) {
  layer.set_values(values);
  for (float& value : values) value += 1;
  const std::int64_t before = test::allocations();
  layer.set_values(values);
  const std::int64_t counted = test::allocations() - before;
  EXPECT_EQ(layer.weights().values, values);
  return counted;
}

TEST(Allocation, ThereIsNoneForNewValues) {
  for (const LayerCase& c : allocation_cases()) {
    SCOPED_TRACE(c.name());
    const auto executor = make_executor(ExecutorKind::Threads, 1);
    FullyConnected layer(c.problem(), c.plan(), c.machine(), device::ExchangeMode::Share,
                         *executor);
    ASSERT_FALSE(layer.set_weights(c.weights, {.force_spills = c.force_spills}));
    EXPECT_EQ(of_new_values(layer, c.weights.values), 0);
  }
}

TEST(Allocation, ThereIsNoneForNewValuesWhereGradAHasALayoutOfItsOwn) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{8, 4}}) {
    const TwoLayouts two = two_layouts(
        {.size = {1, 64, 96, 8}, .block = block, .density = 0.2, .data_type = DataType::Float},
        true, 24);
    FullyConnected layer(two.problem, two.plan, two.machine, device::ExchangeMode::Share,
                         *executor);
    const auto weights = sparse::random_pattern(64, 96, block, 0.2, 3);
    ASSERT_FALSE(layer.set_weights(weights));
    EXPECT_EQ(of_new_values(layer, weights.values), 0);
    ASSERT_FALSE(layer.update_weights(
        sparse::difference(weights, sparse::random_pattern(64, 96, block, 0.2, 4))));
    EXPECT_EQ(of_new_values(layer, layer.weights().values), 0);
  }
}

// The values of both layouts change together, or those of neither.
TEST(Allocation, MayFailWhileValuesAreSetAndBothLayoutsStayTheSame) {
  const auto executor = make_executor(ExecutorKind::Threads, 1);
  const TwoLayouts two = two_layouts(
      {.size = {1, 64, 96, 8}, .block = {1, 1}, .density = 0.2, .data_type = DataType::Float},
      false, 24);
  const auto weights = sparse::random_pattern(64, 96, {1, 1}, 0.2, 3);
  std::vector<float> twice = weights.values;
  for (float& value : twice) value *= 2;
  const auto s = random_matrix<float>(96, 8, 1), q_grad = random_matrix<float>(64, 8, 2);
  const auto results = [&](FullyConnected& layer) {
    Matrix<float> q(64, 8), s_grad(96, 8);
    device::Ledger ledger;
    EXPECT_TRUE(layer.forward<float>(s.view(), q.view(), {}, ledger));
    EXPECT_TRUE(layer.grad_a<float>(q_grad.view(), s_grad.view(), {}, ledger));
    return std::pair(std::vector<float>(q.elements().begin(), q.elements().end()),
                     std::vector<float>(s_grad.elements().begin(), s_grad.elements().end()));
  };
  std::optional<FullyConnected> layer;
  const auto renew = [&] {
    layer.emplace(two.problem, two.plan, two.machine, device::ExchangeMode::Share, *executor);
    ASSERT_FALSE(layer->set_weights(weights));
  };
  renew();
  const auto before = results(*layer);
  long failures = 0;
  renew();
  test::fail_each_allocation([&] { layer->set_values(twice); },
                             [&] {
                               ++failures;
                               EXPECT_EQ(results(*layer), before);
                               renew();
                             });
  EXPECT_GE(failures, 1);
  EXPECT_NE(results(*layer), before);
}

TEST(Allocation, IsCounted) {
  const std::int64_t before = test::allocations();
  const std::vector<int> some(100);
  EXPECT_EQ(test::allocations(), before + 1) << some.size();
}

}  // namespace
}  // namespace tessera::runtime
