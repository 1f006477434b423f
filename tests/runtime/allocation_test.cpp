#include <gtest/gtest.h>

#include "tessera/tests/runtime/counted_allocations.hpp"
#include "tessera/tests/runtime/layer_case.hpp"

namespace tessera::inline v0::runtime {
namespace {

std::vector<LayerCase> cases() {
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
std::vector<std::int64_t> second_calls(const LayerCase& c, int threads) {
  const auto executor = make_executor(ExecutorKind::Threads, threads);
  FullyConnected layer(c.problem(), c.plan(), c.machine(), device::ExchangeMode::Share, *executor);
  EXPECT_FALSE(layer.set_weights(c.weights, {.force_spills = c.force_spills}));
  const Operands<T> in(c);
  Matrix<T> q(c.weights.rows, c.batch), s_grad(c.weights.cols, c.batch);
  sparse::Csr<float> gradient;
  device::Ledger ledger;
  std::vector<std::int64_t> counts;
  for (int call = 0; call < 2; ++call) {
    counts.clear();
    std::int64_t before = test::allocations();
    const auto note = [&](bool finished) {
      const std::int64_t now = test::allocations();
      EXPECT_TRUE(finished);
      if (counts.capacity() > 0) counts.push_back(now - before);
      before = test::allocations();
    };
    counts.reserve(3);
    before = test::allocations();
    note(layer.forward<T>(in.s.view(), q.view(), {}, ledger));
    note(layer.grad_a<T>(in.q_grad.view(), s_grad.view(), {}, ledger));
    note(layer.grad_w<T>(in.q_grad.view(), in.s.view(), std::span(&gradient, 1), {}, ledger));
  }
  return counts;
}

TEST(Allocation, ThereIsNoneInASecondCallOfAnyPass) {
  const std::vector<std::int64_t> none(3, 0);
  for (const LayerCase& c : cases())
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(c.name());
      EXPECT_EQ(c.type == DataType::Half ? second_calls<Half>(c, threads)
                                         : second_calls<float>(c, threads),
                none);
    }
}

TEST(Allocation, IsCounted) {
  const std::int64_t before = test::allocations();
  const std::vector<int> some(100);
  EXPECT_EQ(test::allocations(), before + 1) << some.size();
}

}  // namespace
}  // namespace tessera::inline v0::runtime
