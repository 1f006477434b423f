// Passes with replicas: their bits depend on the number of replicas alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::distributed {
namespace {

const host::HostCpu kTiny{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};

struct Outcome {
  Matrix<float> q, s_grad;
  Matrix<float> gradients;                 // at their places in R, else 0
  std::int64_t most_bytes[3] = {0, 0, 0};  // that a rank received in Fwd, GradA, GradW
};

Problem problem_of(Dims size, BlockShape block) {
  return {.size = size,
          .block = block,
          .density = 0.3,
          .data_type = DataType::Float,
          .grad_a = true,
          .grad_w = true};
}

// Puts the gradients of a rank to their places.
void place(const RankLayer& layer, const std::vector<float>& values, Matrix<float>& all) {
  const sparse::Csr<float>& own = layer.weights();
  const BlockShape block = own.block;
  for (std::int64_t row = 0; row < own.block_rows(); ++row)
    for (std::int64_t i = own.row_begin[std::size_t(row)]; i < own.row_begin[std::size_t(row) + 1];
         ++i)
      for (std::int64_t e = 0; e < block.area(); ++e) {
        const std::int64_t r = layer.parts()[0].rows.begin + row * block.rows + e / block.cols;
        const std::int64_t c =
            layer.parts()[0].columns.begin + own.col[std::size_t(i)] * block.cols + e % block.cols;
        all(r, c) = values[std::size_t(i * block.area() + e)];
      }
}

// Runs three passes with the weights, which are set as values after other ones.
Outcome run(const Problem& problem, const sparse::Csr<float>& weights, int count, int replicas) {
  const Dims size = problem.size;
  const auto s = random_matrix<float>(size.y, size.z, 5);
  const auto q_grad = random_matrix<float>(size.x, size.z, 6);
  Outcome outcome{Matrix<float>(size.x, size.z), Matrix<float>(size.y, size.z),
                  Matrix<float>(weights.rows, weights.cols)};
  sparse::Csr<float> other = weights;
  for (float& value : other.values) value = 3;
  std::mutex mutex;
  run_ranks(count, [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    RankLayer layer(problem, kTiny, *executor, ranks, {.replicas = replicas});
    layer.set_weights(sparse::checked(weights));
    const std::vector<float> values = layer.weights().values;
    layer.set_weights(sparse::checked(other));
    layer.set_values(values);
    const auto own = [&](const Matrix<float>& m, Range rows) {
      return m.view().sub(rows, {0, size.z});
    };
    std::vector<float> gradients(values.size());
    std::int64_t received[3];
    const auto pass = [&](int p, const auto& body) {
      const std::int64_t before = ranks.traffic().received_bytes;
      body();
      received[p] = ranks.traffic().received_bytes - before;
    };
    pass(0, [&] {
      layer.forward<float>(own(s, layer.inputs()),
                           outcome.q.view().sub(layer.outputs(), {0, size.z}));
    });
    pass(1, [&] {
      layer.grad_a<float>(own(q_grad, layer.outputs()),
                          outcome.s_grad.view().sub(layer.inputs(), {0, size.z}));
    });
    pass(2, [&] {
      layer.grad_w<float>(own(q_grad, layer.outputs()), own(s, layer.inputs()), gradients);
    });
    const std::lock_guard lock(mutex);
    place(layer, gradients, outcome.gradients);
    for (int p = 0; p < 3; ++p)
      outcome.most_bytes[p] = std::max(outcome.most_bytes[p], received[p]);
  });
  return outcome;
}

// Takes the gradients at the places of the weights.
sparse::Csr<float> gradient_of(const sparse::Csr<float>& weights, const Matrix<float>& all) {
  sparse::Csr<float> gradient = sparse::with_block(weights, BlockShape{1, 1});
  for (std::int64_t r = 0; r < gradient.rows; ++r)
    for (std::int64_t i = gradient.row_begin[std::size_t(r)];
         i < gradient.row_begin[std::size_t(r) + 1]; ++i)
      gradient.values[std::size_t(i)] = all(r, gradient.col[std::size_t(i)]);
  return gradient;
}

TEST(Replicas, IsRightAndHasTheSameBitsForEveryNumberOfRanks) {
  const verify::Rounding rounding{DataType::Float, DataType::Float, 90};
  for (const BlockShape block : {BlockShape{1, 1}, {4, 2}}) {
    const Problem problem = problem_of({1, 88, 60, 70}, block);
    auto weights = sparse::random_pattern(88, 60, block, 0.3, 1);
    Random random(4);
    for (float& v : weights.values) v = float(2 * random.unit() - 1);
    const auto s = random_matrix<float>(60, 70, 5), q_grad = random_matrix<float>(88, 70, 6);
    for (const int replicas : {1, 2, 3}) {
      const Outcome first = run(problem, weights, replicas, replicas);
      const auto fwd =
          verify::verify_product<float>(weights, s.view(), std::as_const(first.q).view(), rounding);
      EXPECT_TRUE(fwd.ok()) << to_string(fwd);
      const auto grad_a = verify::verify_product<float>(
          sparse::transpose(weights), q_grad.view(), std::as_const(first.s_grad).view(), rounding);
      EXPECT_TRUE(grad_a.ok()) << to_string(grad_a);
      const auto elements = sparse::with_block(weights, BlockShape{1, 1});
      const auto grad_w = verify::verify_gradient<float>(
          elements, gradient_of(weights, first.gradients), q_grad.view(), s.view(), rounding);
      EXPECT_TRUE(grad_w.ok()) << to_string(grad_w);
      for (const int runs : {2, 3, 5}) {
        SCOPED_TRACE(testing::Message() << replicas << " replicas, " << runs << " runs");
        const Outcome more = run(problem, weights, runs * replicas, replicas);
        EXPECT_EQ(more.q, first.q);
        EXPECT_EQ(more.s_grad, first.s_grad);
        EXPECT_EQ(more.gradients, first.gradients);
      }
    }
  }
}

TEST(Replicas, ReceivesAsMuchAsIsForecastAndATenthMoreAtMost) {
  const Problem problem = problem_of({1, 256, 256, 40}, {1, 1});
  const auto weights = sparse::random_pattern(256, 256, {1, 1}, 0.5, 1);
  const Pass passes[] = {Pass::Fwd, Pass::GradA, Pass::GradW};
  for (const int replicas : {1, 2, 4, 8}) {
    const Outcome outcome = run(problem, weights, 16, replicas);
    for (int p = 0; p < 3; ++p) {
      const double bytes = 4 * received_values(problem.size, 16, replicas, passes[p]);
      SCOPED_TRACE(testing::Message() << replicas << " replicas, pass " << p);
      EXPECT_GE(double(outcome.most_bytes[p]), bytes);
      EXPECT_LE(double(outcome.most_bytes[p]), 1.1 * bytes);  // as many non-zeros, not rows
    }
  }
}

TEST(CheapestReplicas, AreTheRootOfTheRanksForSquareLayers) {
  const auto of = [](Dims size, int ranks) {
    return cheapest_replicas({.size = size, .density = 0.1}, ranks);
  };
  EXPECT_EQ(of({1, 4096, 4096, 64}, 16), 4);
  EXPECT_EQ(of({1, 4096, 4096, 64}, 64), 8);
  EXPECT_EQ(of({1, 4096, 4096, 64}, 7), 1);
  EXPECT_EQ(of({1, 1, 1 << 20, 64}, 16), 16);  // sums of a single row
  EXPECT_EQ(cheapest_replicas(problem_of({1, 4096, 4096, 64}, {1, 1}), 16), 4);
}

TEST(Replicas, ChoosesTheCheapestNumberItself) {
  const Problem problem = problem_of({1, 64, 64, 8}, {1, 1});
  run_ranks(4, [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    EXPECT_EQ(RankLayer(problem, kTiny, *executor, ranks, {.replicas = 0}).cut().replicas, 2);
  });
}

TEST(Replicas, RefusesWhatItDoesNotCompute) {
  const Problem problem{.size = {1, 8, 8, 4}, .density = 0.5, .data_type = DataType::Float};
  const auto make = [](const Problem& p, int replicas) {
    return test::refusal([&] {
      run_ranks(4, [&](Communicator& ranks) {
        const auto executor = make_executor(1);
        RankLayer layer(p, kTiny, *executor, ranks, {.replicas = replicas});
        layer.set_weights(sparse::checked(sparse::random_pattern(8, 2, {1, 1}, 0.5, 1)));
      });
    });
  };
  EXPECT_NE(make(problem, 3).find("3 replicas do not divide 4 ranks"), std::string::npos);
  EXPECT_NE(make(problem, 2).find("the weight matrix is 8 x 2"), std::string::npos);
  Problem other = problem;
  other.data_type = DataType::Half;
  for (const int replicas : {0, 2})
    EXPECT_NE(make(other, replicas).find("only layers of floats have"), std::string::npos);
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
    half.exchange("a number", {send}, {receive});
    EXPECT_EQ(other, 10 + (ranks.rank() + 2) % 4);
    half.barrier("end");
  });
}

}  // namespace
}  // namespace tessera::distributed
