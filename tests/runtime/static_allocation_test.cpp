#include <gtest/gtest.h>

#include "tessera/runtime/batches.hpp"
#include "tessera/tests/runtime/static_case.hpp"
#include "tessera/tests/support/failing_allocations.hpp"

// Allocations of layers with a static pattern, and batches of another size.
namespace tessera::runtime {
namespace {

StaticCase some_case(std::int64_t block, std::int64_t batch) {
  Random random(7);
  return static_case(planner::random_matrix(random, 12, 15, block, 0.4), batch, DataType::Half, 9);
}

// A batch of 9 is padded to whole vectors, so operands are copied.
TEST(StaticAllocation, ThereIsNoneInASecondCallOfAnyPassNorForNewValues) {
  for (const std::int64_t block : {1, 4})
    for (const std::int64_t batch : {9, 32}) {
      const StaticCase c = some_case(block, batch);
      const auto executor = make_executor(2);
      StaticLayer layer = c.layer(*executor);
      StaticResults<Half> r = run_all<Half>(c, layer);
      device::Ledger ledger;
      std::vector<float> values = layer.weights().values, gradients(values.size());
      layer.set_values(values);
      for (int call = 0; call < 2; ++call) {
        const long before = test::allocations();
        const bool finished =
            layer.forward<Half>(r.s.view(), r.q.view(), {}, ledger) &&
            layer.grad_a<Half>(r.q_grad.view(), r.s_grad.view(), {}, ledger) &&
            layer.grad_w<Half>(r.q_grad.view(), r.s.view(), gradients, {}, ledger);
        layer.set_values(values);
        const long counted = test::allocations() - before;
        EXPECT_TRUE(finished);
        if (call == 1) {
          EXPECT_EQ(counted, 0) << block << " " << batch;
        }
      }
    }
}

TEST(StaticAllocation, AnyMayFailAndTheLayerIsAsItWas) {
  const StaticCase c = some_case(4, 9);
  const auto executor = make_executor(1);
  StaticLayer untouched = c.layer(*executor);
  const StaticResults<Half> expected = run_all<Half>(c, untouched);
  EXPECT_GT(test::fail_each_allocation([&] { static_cast<void>(c.layer(*executor)); }, [] {}, 7),
            100);
  StaticResults<Half> r = expected;
  for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW}) {
    StaticLayer layer = c.layer(*executor);
    std::vector<float> gradients(std::size_t(layer.values()));
    const auto run = [&] {
      device::Ledger ledger;
      if (pass == Pass::Fwd)
        static_cast<void>(layer.forward<Half>(r.s.view(), r.q.view(), {}, ledger));
      else if (pass == Pass::GradA)
        static_cast<void>(layer.grad_a<Half>(r.q_grad.view(), r.s_grad.view(), {}, ledger));
      else
        static_cast<void>(layer.grad_w<Half>(r.q_grad.view(), r.s.view(), gradients, {}, ledger));
    };
    EXPECT_GT(test::fail_each_allocation(run, [] {}), 0);
    expect_same<Half>(run_all<Half>(c, layer), expected);
  }
}

TEST(StaticBatches, HaveTheResultsOfOneRun) {
  const StaticCase c = some_case(4, 40);
  StaticCase part = c;
  part.problem.size.z = 16;
  plan_as_poplibs(part);
  const auto executor = make_executor(2);
  StaticLayer whole = c.layer(*executor), in_parts = part.layer(*executor);
  const StaticResults<Half> expected = run_all<Half>(c, whole, Values::Signs);
  StaticResults<Half> r = expected;
  const device::Ledger ledger = forward_batch<Half>(in_parts, r.s.view(), r.q.view());
  const auto near = [](const Matrix<Half>& a, const Matrix<Half>& b) {
    return std::ranges::equal(a.elements(), b.elements(), [](Half p, Half q) {
      return std::abs(float(p) - float(q)) <= 0.05f * (1 + std::abs(float(q)));
    });
  };
  EXPECT_TRUE(near(r.q, expected.q));
  EXPECT_GT(std::ssize(ledger.steps), std::ssize(expected.ledgers[0].steps));
}

}  // namespace
}  // namespace tessera::runtime
