#include "tessera/runtime/batches.hpp"

#include <gtest/gtest.h>

#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::runtime {
namespace {

class Batches : public testing::Test {
 protected:
  FullyConnected layer(std::int64_t batch) {
    Problem problem{.size = {1, 24, 40, batch}, .density = 0.2};
    problem.data_type = DataType::Float;
    device::Machine machine = device::machine_preset("gc200");
    machine.tiles = 12;
    FullyConnected result(problem,
                          planner::plan_or_throw(problem, machine, planner::sparse_options()),
                          machine, device::ExchangeMode::Share, *executor_);
    EXPECT_FALSE(result.set_weights(sparse::random_pattern(24, 40, {1, 1}, 0.2, 3)));
    return result;
  }
  std::unique_ptr<Executor> executor_ = make_executor(1);
};

// Whole numbers, so that every order of sums gives the same.
Matrix<float> whole_numbers(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Random random(seed);
  Matrix<float> matrix(rows, cols);
  for (float& v : matrix.elements()) v = float(random.below(7)) - 3;
  return matrix;
}

TEST_F(Batches, OfAnySizeGiveWhatALayerOfThatSizeGives) {
  FullyConnected small = layer(8);
  EXPECT_EQ(small.batch(), 8);
  for (const std::int64_t batch : {1, 7, 8, 9, 16, 29}) {
    FullyConnected whole = layer(batch);
    const auto s = whole_numbers(40, batch, 5);
    Matrix<float> q(24, batch), q_whole(24, batch);
    const auto ledger = forward_batch<float>(small, s.view(), q.view());
    whole.forward<float>(s.view(), q_whole.view());
    EXPECT_EQ(q, q_whole) << batch;
    const auto one = small.forward<float>(Matrix<float>(40, 8).view(), Matrix<float>(24, 8).view());
    EXPECT_EQ(ledger.total(), one.total() * ((batch + 7) / 8));
  }
}

TEST_F(Batches, TakeStridedViewsAndRefuseDifferentColumns) {
  FullyConnected small = layer(8);
  const auto s = whole_numbers(11, 40, 5);  // transposed
  Matrix<float> q(11, 24), straight(24, 11), s_straight(40, 11);
  for (int r = 0; r < 40; ++r)
    for (int c = 0; c < 11; ++c) s_straight(r, c) = s(c, r);
  forward_batch<float>(small, s.view().transposed(), q.view().transposed());
  forward_batch<float>(small, s_straight.view(), straight.view());
  for (int r = 0; r < 24; ++r)
    for (int c = 0; c < 11; ++c) EXPECT_EQ(q(c, r), straight(r, c));
  EXPECT_THROW(forward_batch<float>(small, s_straight.view(), Matrix<float>(24, 10).view()), Error);
}

TEST(BatchParts, CoverEveryColumnOnce) {
  EXPECT_EQ(batch_parts(0, 8), std::vector<Range>{});
  EXPECT_EQ(batch_parts(9, 4), (std::vector<Range>{{0, 4}, {4, 8}, {8, 9}}));
}

}  // namespace
}  // namespace tessera::runtime
