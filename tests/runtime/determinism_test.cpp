#include <gtest/gtest.h>

#include "tessera/tests/runtime/layer_case.hpp"

namespace tessera::runtime {
namespace {

std::vector<LayerCase> programs() {
  std::vector<LayerCase> cases;
  for (const bool travelling : {false, true})
    for (const bool spills : {false, true})
      for (const DataType type : {DataType::Float, DataType::Half}) {
        LayerCase element;
        element.weights = random_weights(30, 42, {1, 1}, 0.3, 4);
        element.partition = {1, 3, 3, 2};
        element.batch = 9;  // padded
        LayerCase block;
        block.weights = random_weights(24, 32, {4, 4}, 0.4, 5);
        block.partition = {1, 2, 4, 3};
        block.batch = 12;
        for (LayerCase c : {element, block}) {
          c.travelling_buckets = travelling;
          c.force_spills = spills;
          c.type = type;
          cases.push_back(c);
        }
      }
  LayerCase separate = cases.front();
  separate.separate_grad_a = true;
  cases.push_back(separate);
  return cases;
}

TEST(Determinism, SharingAndCopyingGiveTheSameBitsAndTheSameLedger) {
  for (const LayerCase& c : programs()) {
    SCOPED_TRACE(c.name());
    const auto shared = run_case(c, {.mode = device::ExchangeMode::Share});
    const auto isolated = run_case(c, {.mode = device::ExchangeMode::Isolate});
    ASSERT_TRUE(shared && isolated);
    EXPECT_EQ(shared->q, isolated->q);
    EXPECT_EQ(shared->s_grad, isolated->s_grad);
    EXPECT_EQ(shared->gradient, isolated->gradient);
    EXPECT_EQ(shared->ledgers, isolated->ledgers);
  }
}

// In Share mode, columns of several tiles are computed side by side as far as they fit in the
// cache.
TEST(Determinism, PartsOfABatchThatDoNotFitTheCacheTogetherGiveTheSameBits) {
  LayerCase single;
  single.weights = random_weights(32, 4096, {4, 4}, 0.05, 6);
  single.partition = {1, 2, 2, 8};
  single.batch = 256;
  LayerCase half = single;
  half.type = DataType::Half;
  for (const LayerCase& c : {single, half}) {
    const auto isolated = run_case(c, {.mode = device::ExchangeMode::Isolate});
    ASSERT_TRUE(isolated);
    for (const int threads : {1, 3}) {
      const auto shared = run_case(c, {.mode = device::ExchangeMode::Share, .threads = threads});
      ASSERT_TRUE(shared && same(*isolated, *shared)) << c.name() << ", " << threads << " threads";
    }
  }
}

TEST(Determinism, BitsAndLedgerDoNotDependOnThreadsOrExecutor) {
  for (const LayerCase& c : programs()) {
    SCOPED_TRACE(c.name());
    const auto one = run_case(c, {.executor = ExecutorKind::Threads, .threads = 1});
    ASSERT_TRUE(one);
    for (const ExecutorKind kind : {ExecutorKind::Threads, ExecutorKind::Tbb}) {
      if (!has_executor(kind)) continue;
      for (const int threads : {2, 3, 7, 16}) {
        const auto many = run_case(c, {.executor = kind, .threads = threads});
        ASSERT_TRUE(many);
        EXPECT_TRUE(same(*one, *many)) << threads << " threads";
      }
    }
  }
}

TEST(Determinism, AnotherSeedGivesOtherBits) {
  LayerCase a = programs().front(), b = a;
  b.seed = a.seed + 1;
  EXPECT_FALSE(same(*run_case(a), *run_case(b)));
}

}  // namespace
}  // namespace tessera::runtime
