// A forward pass with replicas: its bits depend on their number alone.

#include "tessera/distributed/replicated_layer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <string>

#include "tessera/base/random_matrix.hpp"
#include "tessera/distributed/sub_ranks.hpp"
#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::distributed {
namespace {

const host::HostCpu kTiny{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};

struct Outcome {
  Matrix<float> q;
  std::int64_t most_bytes = 0;  // that a rank received in the pass
};

Outcome run(const Problem& problem, const sparse::Csr<float>& weights, int count, int replicas) {
  const Dims size = problem.size;
  const auto s = random_matrix<float>(size.y, size.z, 5);
  Outcome outcome{Matrix<float>(size.x, size.z)};
  std::mutex mutex;
  run_ranks(count, [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    ReplicatedLayer layer(problem, kTiny, *executor, ranks, replicas);
    layer.set_weights(weights);
    const std::int64_t before = ranks.traffic().received_bytes;
    layer.forward(s.view().sub(layer.inputs(), {0, size.z}),
                  outcome.q.view().sub(layer.outputs(), {0, size.z}));
    const std::lock_guard lock(mutex);
    outcome.most_bytes = std::max(outcome.most_bytes, ranks.traffic().received_bytes - before);
  });
  return outcome;
}

TEST(ReplicatedLayer, IsRightAndHasTheSameBitsForEveryNumberOfRanks) {
  for (const BlockShape block : {BlockShape{1, 1}, {4, 2}}) {
    const Problem problem{
        .size = {1, 88, 60, 70}, .block = block, .density = 0.3, .data_type = DataType::Float};
    const auto weights = sparse::random_pattern(88, 60, block, 0.3, 1);
    const auto s = random_matrix<float>(60, 70, 5);
    for (const int replicas : {1, 2, 3}) {
      const Outcome first = run(problem, weights, replicas, replicas);
      const auto verdict = verify::verify_product<float>(
          weights, s.view(), std::as_const(first.q).view(), {DataType::Float, DataType::Float, 60});
      EXPECT_TRUE(verdict.ok()) << to_string(verdict);
      for (const int runs : {2, 3, 5})
        EXPECT_EQ(run(problem, weights, runs * replicas, replicas).q, first.q)
            << replicas << " replicas, " << runs << " runs";
    }
  }
}

TEST(ReplicatedLayer, ReceivesNoMoreThanTheBound) {
  const Problem problem{.size = {1, 256, 256, 40}, .density = 0.5, .data_type = DataType::Float};
  const auto weights = sparse::random_pattern(256, 256, {1, 1}, 0.5, 1);
  for (const int replicas : {1, 2, 4, 8}) {
    const double bytes = 4 * received_values(problem.size, 16, replicas);
    EXPECT_LE(double(run(problem, weights, 16, replicas).most_bytes), 1.1 * bytes)
        << replicas << " replicas";  // runs have about as many non-zeros, not as many rows
  }
}

TEST(CheapestReplicas, AreTheRootOfTheRanksForSquareLayers) {
  EXPECT_EQ(cheapest_replicas({1, 4096, 4096, 64}, 16), 4);
  EXPECT_EQ(cheapest_replicas({1, 4096, 4096, 64}, 64), 8);
  EXPECT_EQ(cheapest_replicas({1, 4096, 4096, 64}, 7), 1);
  EXPECT_EQ(cheapest_replicas({1, 1, 1 << 20, 64}, 16), 16);  // sums of a single row
}

TEST(ReplicatedLayer, RefusesWhatItDoesNotCompute) {
  const Problem problem{.size = {1, 8, 8, 4}, .density = 0.5, .data_type = DataType::Float};
  const auto make = [](const Problem& p, int replicas) {
    return test::refusal([&] {
      run_ranks(4, [&](Communicator& ranks) {
        const auto executor = make_executor(1);
        ReplicatedLayer layer(p, kTiny, *executor, ranks, replicas);
        layer.set_weights(sparse::random_pattern(8, 2, {1, 1}, 0.5, 1));
      });
    });
  };
  EXPECT_NE(make(problem, 3).find("3 replicas do not divide 4 ranks"), std::string::npos);
  EXPECT_NE(make(problem, 2).find("another size"), std::string::npos);
  Problem other = problem;
  other.grad_w = true;
  EXPECT_NE(make(other, 2).find("the forward pass in float"), std::string::npos);
  other = problem;
  other.size.y = 2;
  EXPECT_NE(make(other, 4).find("is empty"), std::string::npos);
}

TEST(SubRanks, TalkAmongThemselves) {
  run_ranks(4, [](Communicator& ranks) {
    SubRanks half(ranks, ranks.rank() % 2 == 0 ? std::vector<int>{0, 2} : std::vector<int>{3, 1});
    EXPECT_EQ(half.size(), 2);
    const int own = 10 + ranks.rank();
    int other = 0;
    const SendPiece send{1 - half.rank(), std::as_bytes(std::span(&own, 1))};
    const ReceivePiece receive{1 - half.rank(), std::as_writable_bytes(std::span(&other, 1))};
    half.exchange("a number", {&send, 1}, {&receive, 1});
    EXPECT_EQ(other, 10 + (ranks.rank() + 2) % 4);
    half.barrier("end");
  });
  test::refusal([] { run_ranks(2, [](Communicator& ranks) { SubRanks one(ranks, {0}); }); });
}

}  // namespace
}  // namespace tessera::distributed
