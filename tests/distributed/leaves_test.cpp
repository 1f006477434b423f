// A batch that is split over ranks: gradients have the same bits for every number of ranks.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::distributed {
namespace {

constexpr int kRanks[] = {1, 2, 3, 4, 5, 8, 17};

TEST(Leaves, HasTheSameBitsForEveryNumberOfRanks) {
  const Problem problem{.size = {1, 40, 30, 198},
                        .density = 0.3,
                        .data_type = DataType::Float,
                        .grad_a = true,
                        .grad_w = true};
  const host::HostCpu cpu{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};
  const auto weights = sparse::random_pattern(40, 30, {1, 1}, 0.3, 4);
  const auto s = random_matrix<float>(30, 198, 5), q_grad = random_matrix<float>(40, 198, 6);
  Matrix<float> first_q, first_s_grad;
  std::vector<float> first;
  for (const int count : kRanks) {
    Matrix<float> q(40, 198), s_grad(30, 198);
    std::vector<float> of_rank_0(weights.values.size());
    run_ranks(count, [&](Communicator& ranks) {
      const auto executor = make_executor(1);
      RankLayer layer(problem, cpu, *executor, ranks, {.leaves = kLeaves});
      layer.set_weights(sparse::checked(weights));
      const Range own = layer.columns_of_batch();
      const auto part = [&](auto view) { return view.sub({0, view.rows}, own); };
      std::vector<float> gradients(weights.values.size());
      layer.forward<float>(part(s.view()), part(q.view()));
      layer.grad_a<float>(part(q_grad.view()), part(s_grad.view()));
      layer.grad_w<float>(part(q_grad.view()), part(s.view()), gradients);
      if (ranks.rank() == 0) of_rank_0 = gradients;
    });
    if (count == 1) {
      first = of_rank_0;
      first_q = q;
      first_s_grad = s_grad;
    }
    EXPECT_EQ(of_rank_0, first) << count << " ranks";
    EXPECT_EQ(q, first_q) << count << " ranks";
    EXPECT_EQ(s_grad, first_s_grad) << count << " ranks";
  }
}

// Gradients are those of a layer of one process for each leaf, added in the order of a binary tree.
TEST(Leaves, HaveTheBitsOfTheirTreeAndOfOneProcess) {
  const Problem problem{.size = {2, 40, 30, 36},
                        .density = 0.3,
                        .data_type = DataType::Float,
                        .grad_a = true,
                        .grad_w = true};
  const host::HostCpu cpu{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};
  const std::vector weights{sparse::random_pattern(40, 30, {1, 1}, 0.3, 4),
                            sparse::random_pattern(40, 30, {1, 1}, 0.3, 5)};
  const auto s = random_matrix<float>(60, 36, 5), q_grad = random_matrix<float>(80, 36, 6);
  const auto executor = make_executor(1);
  host::HostLayer alone(problem, cpu, *executor);
  alone.set_weights(sparse::checked(weights));
  Matrix<float> q(80, 36), s_grad(60, 36), got_q(80, 36), got_s_grad(60, 36);
  alone.forward<float>(s.view(), q.view());
  alone.grad_a<float>(q_grad.view(), s_grad.view());
  const Range leaves[] = {{0, 12}, {12, 24}, {24, 36}};
  std::vector<std::vector<float>> sums;
  for (const Range leaf : leaves) {
    sums.emplace_back(std::size_t(alone.values()));
    alone.grad_w<float>(q_grad.view().sub({0, 80}, leaf), s.view().sub({0, 60}, leaf), sums.back());
  }
  for (std::size_t i = 0; i < sums[0].size(); ++i)
    sums[0][i] = (sums[0][i] + sums[1][i]) + sums[2][i];
  run_ranks(2, [&](Communicator& ranks) {
    const auto own_executor = make_executor(1);
    RankLayer layer(problem, cpu, *own_executor, ranks, {.leaves = 3});
    layer.set_weights(sparse::checked(weights));
    const auto part = [&](auto view) { return view.sub({0, view.rows}, layer.columns_of_batch()); };
    std::vector<float> gradients(sums[0].size());
    layer.forward<float>(part(s.view()), part(got_q.view()));
    layer.grad_a<float>(part(q_grad.view()), part(got_s_grad.view()));
    layer.grad_w<float>(part(q_grad.view()), part(s.view()), gradients);
    EXPECT_EQ(gradients, sums[0]);
  });
  EXPECT_EQ(got_q, q);
  EXPECT_EQ(got_s_grad, s_grad);
}

TEST(Leaves, SaysThatACallHasTheColumnsOfTheRank) {
  const Problem problem{.size = {1, 8, 8, 32}, .data_type = DataType::Float};
  run_ranks(3, [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    RankLayer layer(problem, host::read_host_cpu(), *executor, ranks, {.leaves = kLeaves});
    layer.set_weights(sparse::random_pattern(8, 8, {1, 1}, 0.5, 3));
    EXPECT_FALSE(layer.facts().any_batch);
    EXPECT_EQ(layer.batch(), layer.columns_of_batch().size());
    const Matrix<float> s(8, 32);
    Matrix<float> q(8, 32);
    const std::string message = test::refusal([&] { layer.forward<float>(s.view(), q.view()); });
    EXPECT_NE(message.find("s is 8 x 32; this layer needs 8 x 1"), std::string::npos) << message;
  });
}

TEST(Leaves, LeaveGradientsAsTheyWereIfAnotherRankFails) {
  const Problem problem{
      .size = {1, 8, 8, 32}, .data_type = DataType::Float, .grad_a = false, .grad_w = true};
  std::vector<float> gradients(32, 9.0f);
  const auto run = [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    RankLayer layer(problem, host::read_host_cpu(), *executor, ranks, {.leaves = kLeaves});
    layer.set_weights(sparse::random_pattern(8, 8, {1, 1}, 0.5, 3));
    if (ranks.rank() == 1) throw Error(ErrorCode::InvalidArgument, "no more samples");
    const auto operand = random_matrix<float>(8, layer.batch(), 1);
    layer.grad_w<float>(operand.view(), operand.view(), gradients);
  };
  EXPECT_NE(test::refusal([&] { run_ranks(2, run); }).find("no more samples"), std::string::npos);
  EXPECT_EQ(gradients, std::vector<float>(32, 9.0f));
}

TEST(Leaves, RefusesAnOddBatch) {
  const std::string message = test::refusal([] {
    run_ranks(2, [](Communicator& ranks) {
      const auto executor = make_executor(1);
      RankLayer layer({.size = {1, 4, 4, 7}, .data_type = DataType::Float}, host::read_host_cpu(),
                      *executor, ranks, {.leaves = kLeaves});
    });
  });
  EXPECT_NE(message.find("must be even"), std::string::npos) << message;
}

}  // namespace
}  // namespace tessera::distributed
