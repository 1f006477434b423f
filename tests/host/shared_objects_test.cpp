// Objects that were moved from, and objects in a child of fork() whose parent was using them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/host/gradient_panels.hpp"
#include "tessera/host/gradient_places.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/host/matmul.hpp"
#include "tessera/host/prepared.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/forked.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::host {
namespace {

using test::refusal;
using testing::HasSubstr;

constexpr std::int64_t kSide = 64, kBatch = 48;
const HostCpu kCpu{
    .cores = 2, .l1_data = Bytes(32 << 10), .l2 = Bytes(1 << 20), .l3 = Bytes(32 << 20)};
const Problem kProblem{.size = {1, kSide, kSide, kBatch},
                       .block = {1, 1},
                       .density = 0.3,
                       .data_type = DataType::Float,
                       .grad_a = true,
                       .grad_w = true};

struct SharedLayer {
  sparse::Csr<float> weights = sparse::random_pattern(kSide, kSide, {1, 1}, 0.3, 1);
  Matrix<float> s = random_matrix<float>(kSide, kBatch, 2), q{kSide, kBatch};
  std::unique_ptr<Executor> executor = make_executor(2);
  HostLayer layer{kProblem, kCpu, *executor};

  SharedLayer() { layer.set_weights(weights); }
  CompressedRows<float, std::int32_t, std::int64_t> a() const {
    return {kSide, kSide, {1, 1}, weights.row_begin, weights.col, weights.values};
  }
};

TEST(MovedFrom, ALayerRefusesEveryCall) {
  SharedLayer in;
  HostLayer other(std::move(in.layer));
  HostLayer& empty = in.layer;
  std::vector<float> values(in.weights.values.size());
  const sparse::PatternChange change;
  EXPECT_THAT(refusal([&] { empty.forward<float>(in.s.view(), in.q.view()); }),
              HasSubstr("HostLayer was moved from"));
  refusal([&] { empty.grad_a<float>(in.s.view(), in.q.view()); });
  refusal([&] { empty.grad_w<float>(in.s.view(), in.q.view(), values); });
  refusal([&] { empty.set_weights(in.weights); });
  refusal([&] { empty.set_values(values); });
  refusal([&] { empty.change_values([](std::span<float>, std::int64_t) {}); });
  refusal([&] { empty.update_weights(change); });
  refusal([&] { static_cast<void>(empty.prepare_update(change)); });
  refusal([&] { empty.commit(other.prepare_update(change)); });
  refusal([&] { static_cast<void>(empty.largest_gradients<float>(1, in.s.view(), in.s.view())); });
  refusal([&] { static_cast<void>(empty.batch()); });
  refusal([&] { static_cast<void>(empty.values()); });
  refusal([&] { static_cast<void>(empty.memory_bytes()); });
  refusal([&] { static_cast<void>(empty.weights()); });
  refusal([&] { static_cast<void>(empty.buckets()); });
  refusal([&] { static_cast<void>(empty.cells(Pass::Fwd)); });
  refusal([&] { static_cast<void>(empty.is_dense(Pass::Fwd)); });
  refusal([&] { static_cast<void>(empty.is_packed(Pass::Fwd)); });
  refusal([&] { static_cast<void>(empty.rounding(Pass::Fwd)); });
  refusal([&] { static_cast<void>(empty.forecast(Pass::Fwd)); });
  other.forward<float>(in.s.view(), in.q.view());
}

TEST(MovedFrom, ALayerMayBeAssignedTo) {
  SharedLayer in;
  Matrix<float> expected(kSide, kBatch);
  in.layer.forward<float>(in.s.view(), expected.view());
  HostLayer other(std::move(in.layer));
  in.layer = std::move(other);
  in.layer.forward<float>(in.s.view(), in.q.view());
  EXPECT_EQ(in.q, expected);
}

TEST(MovedFrom, AnUpdateIsNeitherReadNorCommitted) {
  SharedLayer in;
  HostLayer::PreparedUpdate first = in.layer.prepare_update({});
  HostLayer::PreparedUpdate second(std::move(first));
  EXPECT_THAT(refusal([&] { static_cast<void>(first.placed()); }),
              HasSubstr("PreparedUpdate was moved from"));
  refusal([&] { in.layer.commit(std::move(first)); });
  in.layer.commit(std::move(second));
}

TEST(MovedFrom, AProductAndGradientsRefuse) {
  SharedLayer in;
  const MatMulProblem problem{
      .m = kSide, .k = kSide, .n = kBatch, .density = 0.3, .data_type = DataType::Float};
  MatMul product(problem, kCpu, *in.executor);
  const MatMul moved(std::move(product));
  EXPECT_THAT(refusal([&] { product.set_sparse(in.weights); }), HasSubstr("moved from"));
  const GradientOperands operands{in.s.view(), in.s.view()};
  GradientPanel panel({16, 16}, {&operands, 1});
  const GradientPanel moved_panel(std::move(panel));
  EXPECT_THAT(refusal([&] { panel.compute({0, 16}, {0, 16}); }),
              HasSubstr("GradientPanel was moved from"));
  PlacesGradient places({1, 1}, 10, {&operands, 1}, *in.executor);
  const PlacesGradient moved_places(std::move(places));
  std::vector<float> out(in.weights.col.size());
  EXPECT_THAT(refusal([&] { places.compute(0, in.weights.row_begin, in.weights.col, out); }),
              HasSubstr("PlacesGradient was moved from"));
}

// Does `work` on a thread, at least once before this returns and until the object ends.
class Beside {
 public:
  template <class Work>
  explicit Beside(const Work& work)
      : thread_([this, work](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            work();
            begun_ = true;
          }
        }) {
    while (!begun_) std::this_thread::yield();
  }

 private:
  std::atomic<bool> begun_ = false;
  std::jthread thread_;
};

TEST(AfterFork, TheChildComputesWithALayerThatAnotherThreadWasUsing) {
  if (!test::kChildrenMayStartThreads) GTEST_SKIP() << "children of fork() are not followed";
  SharedLayer in;
  Matrix<float> expected(kSide, kBatch);
  in.layer.forward<float>(in.s.view(), expected.view());
  const Beside passes([&] { in.layer.forward<float>(in.s.view(), in.q.view()); });
  for (int trial = 0; trial < 5; ++trial)
    EXPECT_EQ(test::in_child([&] {
                Matrix<float> q(kSide, kBatch), by_spmm(kSide, kBatch);
                in.layer.forward<float>(in.s.view(), q.view());
                HostLayer own(kProblem, kCpu, *in.executor);
                own.set_weights(in.weights);
                own.forward<float>(in.s.view(), by_spmm.view());
                return q == expected && by_spmm == expected;
              }),
              0)
        << trial;
}

TEST(AfterFork, TheChildMultipliesByAPreparedMatrixThatOtherThreadsWereUsing) {
  if (!test::kChildrenMayStartThreads) GTEST_SKIP() << "children of fork() are not followed";
  SharedLayer in;
  Prepared<float> prepared(in.a(), *in.executor);
  Matrix<float> expected(kSide, kBatch);
  prepared.spmm(in.s.view(), expected.view(), *in.executor);
  const auto beside = make_executor(1);
  const Beside products([&] { prepared.spmm(in.s.view(), in.q.view(), *beside); });
  for (int trial = 0; trial < 5; ++trial)
    EXPECT_EQ(test::in_child([&] {
                Matrix<float> q(kSide, kBatch);
                prepared.spmm(in.s.view(), q.view(), *in.executor);
                prepared.set_values(in.weights.values);
                return q == expected;
              }),
              0)
        << trial;
}

TEST(AfterFork, ALayerThatWasBeingChangedIsRefusedInTheChildAndGoesOnInTheParent) {
  if (!test::kChildrenMayStartThreads) GTEST_SKIP() << "children of fork() are not followed";
  SharedLayer in;
  std::atomic<int> step = 0;
  std::jthread changing([&] {
    in.layer.change_values([&](std::span<float>, std::int64_t) {
      int none = 0;
      step.compare_exchange_strong(none, 1);
      while (step < 2) std::this_thread::yield();
    });
  });
  while (step < 1) std::this_thread::yield();
  EXPECT_EQ(test::in_child([&] {
              EXPECT_THAT(refusal([&] { in.layer.forward<float>(in.s.view(), in.q.view()); }),
                          HasSubstr("fork()"));
              return !testing::Test::HasFailure();
            }),
            0);
  step = 2;
  changing.join();
  in.layer.forward<float>(in.s.view(), in.q.view());
}

}  // namespace
}  // namespace tessera::host
