// Layers of several groups on ranks, bit by bit against one process.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::distributed {
namespace {

const host::HostCpu kTiny{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};
constexpr std::int64_t kX = 40, kY = 36, kZ = 70;

Problem problem_of(std::int64_t groups, BlockShape block, DataType type) {
  return {.size = {groups, kX, kY, kZ},
          .block = block,
          .density = 0.3,
          .data_type = type,
          .grad_a = true,
          .grad_w = true};
}

std::vector<sparse::Csr<float>> weights_of(std::int64_t groups, BlockShape block) {
  std::vector<sparse::Csr<float>> all;
  Random random(4);
  for (std::int64_t g = 0; g < groups; ++g) {
    all.push_back(sparse::random_pattern(kX, kY, block, 0.3, std::uint64_t(g)));
    for (float& value : all.back().values) value = float(2 * random.unit() - 1);
  }
  return all;
}

std::vector<std::int64_t> groups_of(const RankLayer& layer) {
  std::vector<std::int64_t> groups;
  for (const GroupPart& part : layer.parts()) groups.push_back(part.group);
  return groups;
}

template <class T>
void expect_bits_of_one(std::int64_t groups, BlockShape block, int count) {
  SCOPED_TRACE(std::to_string(groups) + " groups, ranks " + std::to_string(count));
  const Problem problem = problem_of(groups, block, data_type_of<T>());
  const auto weights = weights_of(groups, block);
  const auto s = random_matrix<T>(groups * kY, kZ, 5),
             q_grad = random_matrix<T>(groups * kX, kZ, 6);
  const auto executor = make_executor(1);
  host::HostLayer alone(problem, kTiny, *executor);
  alone.set_weights(sparse::checked(weights));
  Matrix<T> q(groups * kX, kZ), s_grad(groups * kY, kZ);
  std::vector<float> gradients(std::size_t(alone.values()));
  alone.forward<T>(s.view(), q.view());
  alone.grad_a<T>(q_grad.view(), s_grad.view());
  alone.grad_w<T>(q_grad.view(), s.view(), gradients);
  run_ranks(count, [&](Communicator& ranks) {
    const auto own_executor = make_executor(1);
    RankLayer layer(problem, kTiny, *own_executor, ranks);
    layer.set_weights(sparse::checked(weights));
    // Returns this rank's rows of a matrix of all groups.
    const auto rows_of = [&](const Matrix<T>& all, std::int64_t rows, auto range_of) {
      std::vector<T> own;
      for (const std::int64_t g : groups_of(layer))
        for (std::int64_t r = range_of(g).begin; r < range_of(g).end; ++r)
          for (std::int64_t c = 0; c < kZ; ++c) own.push_back(all(g * rows + r, c));
      return own;
    };
    const auto in = [&](std::int64_t g) { return layer.inputs(g); };
    const auto out = [&](std::int64_t g) { return layer.outputs(g); };
    const auto view = [](const std::vector<T>& rows) {
      return MatrixView<const T>{rows.data(), std::ssize(rows) / kZ, kZ, kZ, 1};
    };
    const std::vector<T> own_s = rows_of(s, kY, in), own_q_grad = rows_of(q_grad, kX, out);
    Matrix<T> own_q(layer.facts().output_rows, kZ), own_s_grad(layer.facts().input_rows, kZ);
    std::vector<float> own(std::size_t(layer.values()));
    verify::Checksums checksums;
    PassTimes times;
    EXPECT_TRUE(layer.forward<T>(view(own_s), own_q.view(), {.self_check = &checksums}, times));
    EXPECT_TRUE(checksums.ok() && checksums.compared > 0);
    EXPECT_TRUE(groups % count != 0 || times.received_bytes == 0) << times.received_bytes;
    layer.grad_a<T>(view(own_q_grad), own_s_grad.view());
    layer.grad_w<T>(view(own_q_grad), view(own_s), own);
    EXPECT_TRUE(std::ranges::equal(own_q.elements(), rows_of(q, kX, out)));
    EXPECT_TRUE(std::ranges::equal(own_s_grad.elements(), rows_of(s_grad, kY, in)));
    std::vector<float> expected;
    std::int64_t first = 0;
    for (std::int64_t g = 0; g < groups; ++g) {
      const sparse::Csr<float>& of_group = weights[std::size_t(g)];
      const auto own_groups = groups_of(layer);
      if (std::ranges::find(own_groups, g) != own_groups.end()) {
        const std::int64_t begin =
            of_group.row_begin[std::size_t(layer.outputs(g).begin / block.rows)] * block.area();
        const auto from = gradients.begin() + first + begin;
        expected.insert(expected.end(), from, from + std::ssize(layer.weights(g).values));
      }
      first += std::ssize(of_group.values);
    }
    EXPECT_EQ(own, expected);
  });
}

TEST(Groups, HasTheBitsOfOneRankForAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 4, 6, 8})
    for (const std::int64_t groups : {1, 2, 3, 4}) {
      expect_bits_of_one<float>(groups, {1, 1}, ranks);
      expect_bits_of_one<Half>(groups, {4, 2}, ranks);
    }
}

TEST(Groups, ValuesAreSetGroupByGroup) {
  const auto weights = weights_of(4, {1, 1});
  run_ranks(2, [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    const Problem problem = problem_of(4, {1, 1}, DataType::Float);
    RankLayer layer(problem, kTiny, *executor, ranks), other(problem, kTiny, *executor, ranks);
    layer.set_weights(sparse::checked(weights));
    auto ones = weights;
    for (auto& matrix : ones) matrix.values.assign(matrix.values.size(), 1.0f);
    other.set_weights(sparse::checked(ones));
    for (const std::int64_t g : groups_of(layer)) other.set_values(layer.weights(g).values, g);
    const auto q_grad = random_matrix<float>(layer.facts().output_rows, kZ, 1);
    Matrix<float> a(layer.facts().input_rows, kZ), b(layer.facts().input_rows, kZ);
    layer.grad_a<float>(q_grad.view(), a.view());
    other.grad_a<float>(q_grad.view(), b.view());
    EXPECT_EQ(a, b);
  });
}

TEST(Groups, RefusesWhatIsNotItsOwn) {
  run_ranks(2, [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    RankLayer layer(problem_of(2, {1, 1}, DataType::Float), kTiny, *executor, ranks);
    test::refusal([&] { layer.weights(); });
    test::refusal([&] { layer.set_weights(sparse::checked(weights_of(3, {1, 1}))); });
    layer.set_weights(sparse::checked(weights_of(2, {1, 1})));
    const std::int64_t other = 1 - ranks.rank();
    EXPECT_NE(test::refusal([&] { layer.outputs(other); }).find("has nothing of group"),
              std::string::npos);
    EXPECT_NE(test::refusal([&] { layer.weights(other); }).find("has nothing of group"),
              std::string::npos);
    EXPECT_NE(test::refusal([&] { layer.prepare_update({}, other); }).find("has nothing of group"),
              std::string::npos);
    Matrix<float> s(kY + 1, kZ), q(kX, kZ);
    test::refusal([&] { layer.forward<float>(std::as_const(s).view(), q.view()); });
  });
}

}  // namespace
}  // namespace tessera::distributed
