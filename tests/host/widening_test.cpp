// Products in 16 bits that read floats.

#include <gtest/gtest.h>

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/host/layer_case.hpp"

namespace tessera::host {
namespace {

using test::Results;

template <class T>
void expect_same_bits_widened(std::int64_t z, double density) {
  SCOPED_TRACE(testing::Message() << "z " << z << " density " << density);
  const Problem problem = problem_of<T>({1, 70, 90, z}, {1, 1});
  HostCpu narrow = kTiny;
  narrow.vector = Bytes(32);
  Case<T> plain{problem, {}}, wide{problem, {}, narrow};
  const sparse::Csr<float> weights = weights_of(problem, density, 3)[0];
  const sparse::PatternChange change = change_to(weights, density, 20);
  std::vector<float> values = sparse::with_change(weights, change).values;
  for (float& v : values) v *= 0.3f;
  std::vector<Results<T>> results;
  for (Case<T>* one : {&plain, &wide}) {
    one->layer.set_weights(weights);
    results.push_back(one->run());
    EXPECT_FALSE(one->layer.update_weights(change, 0));
    results.push_back(one->run());
    one->layer.set_values(values);
    results.push_back(one->run());
    one->layer.change_values([](std::span<float> part, std::int64_t) {
      for (float& v : part) v += 0.01f;
    });
    results.push_back(one->run());
  }
  for (std::size_t i = 0; i < results.size() / 2; ++i)
    EXPECT_EQ(results[i], results[i + results.size() / 2]) << "step " << i;
  // Both widen few columns, and slices in the first cache.
  EXPECT_EQ(wide.layer.memory_bytes() > plain.layer.memory_bytes(), density >= 0.1 && z >= 64);
}

TEST(HostWidening, WidensNumbersOf16BitsWithTheSameBits) {
  for (const std::int64_t z : {1, 5, 16, 64, 100})
    for (const double density : {0.01, 0.3}) {
      expect_same_bits_widened<Half>(z, density);
      expect_same_bits_widened<BFloat16>(z, density);
    }
}

// Sets the second and the third column of all blocks to large numbers that cancel for equal inputs:
// what they leave of the others shows in 16 bits in which order columns were added.
template <class T>
void cancel_columns(sparse::Csr<float>& weights) {
  constexpr float kLarge = std::is_same_v<T, Half> ? 0x1p14f : 0x1p20f;
  const std::size_t width = std::size_t(weights.block.cols);
  for (std::size_t i = 0; i < weights.values.size(); ++i) {
    const float own = 0.17f * float(i % 13) - 1;
    weights.values[i] = i % width == 1 ? kLarge : i % width == 2 ? -kLarge : own;
  }
}

// Layers that are planned for more columns than are widened have the same cells as those for as
// many.
template <class T>
void expect_same_bits_of_widened_blocks() {
  for (const BlockShape block : {BlockShape{2, 3}, {5, 2}, {4, 4}})
    for (const std::int64_t z : {1, 5, 16, 64}) {
      const Problem problem = problem_of<T>({1, 60, 96, z}, block);
      Problem many = problem;
      many.size.z = kMostWideColumns + 1;
      Case<T> wide{problem, {}}, plain{many, {}};
      sparse::Csr<float> weights = weights_of(problem, 0.3, 3)[0];
      cancel_columns<T>(weights);
      for (std::int64_t r = 0; r < wide.s.rows(); ++r)
        for (std::int64_t c = 0; c < wide.s.cols(); ++c) wide.s(r, c) = T(1.0f);
      for (Case<T>* one : {&wide, &plain}) {
        one->s = wide.s;
        one->q_grad = wide.q_grad;
        one->layer.set_weights(weights);
      }
      EXPECT_GT(wide.layer.memory_bytes(), plain.layer.memory_bytes());
      EXPECT_EQ(wide.run(), plain.run()) << to_string(problem);
      for (Case<T>* one : {&wide, &plain})
        one->layer.set_values(std::vector(weights.values.size(), 1.0f));
      EXPECT_EQ(wide.run(), plain.run()) << to_string(problem);
      const sparse::PatternChange change = change_to(weights, 0.3, 20);
      for (Case<T>* one : {&wide, &plain}) EXPECT_FALSE(one->layer.update_weights(change, 0));
      EXPECT_EQ(wide.run(), plain.run()) << to_string(problem);
    }
}

TEST(HostWidening, WidensBlocksWithTheSameBits) {
  expect_same_bits_of_widened_blocks<Half>();
  expect_same_bits_of_widened_blocks<BFloat16>();
}

TEST(HostWidening, ReadsHalvesOfBlocksForMoreColumnsThanItWidens) {
  constexpr std::int64_t kFew = 4, kMany = 100;
  const Problem problem = problem_of<Half>({1, 60, 96, kFew}, {4, 4});
  Case<Half> one{problem, {}};
  one.layer.set_weights(weights_of(problem, 0.3, 3)[0]);
  const Matrix<Half> s = random_matrix<Half>(96, kMany, 5);
  Matrix<Half> q(60, kMany), parts(60, kMany);
  one.layer.forward<Half>(s.view(), q.view());
  for (std::int64_t z = 0; z < kMany; z += kFew)
    one.layer.forward<Half>(s.view().sub({0, 96}, {z, z + kFew}),
                            parts.view().sub({0, 60}, {z, z + kFew}));
  EXPECT_EQ(q, parts);
}

TEST(HostWidening, LeavesFastPairsAndBlocksThatAreReadSeldomIn16Bits) {
  const auto bytes = [](const Problem& problem, double density, auto one) {
    Case<decltype(one)> made{problem, {}, {2, Bytes(2048), Bytes(16384), {}, Bytes(64), true}};
    made.layer.set_weights(weights_of(problem, density, 3)[0]);
    return made.layer.memory_bytes();
  };
  const Problem half = problem_of<Half>({1, 60, 96, 5}, {4, 4});
  const Problem bfloat16 = problem_of<BFloat16>({1, 60, 96, 5}, {4, 4});
  EXPECT_GT(bytes(half, 0.3, Half()), bytes(bfloat16, 0.3, BFloat16()));
  EXPECT_EQ(bytes(half, 0.02, Half()), bytes(bfloat16, 0.02, BFloat16()));
}

}  // namespace
}  // namespace tessera::host
