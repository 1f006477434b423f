// Blocks of 16 floats on operands with the batch first, against the same operands transposed.

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/codelets/internal/fast/simd_targets.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::host {
namespace {

using codelets::internal::UseSimdTarget;

constexpr std::int64_t kX = 112, kY = 640;
constexpr HostCpu kCpu{.cores = 2, .l1_data = Bytes(32 << 10), .l2 = Bytes(1 << 20), .l3 = Bytes()};

Matrix<float> transpose_of(const Matrix<float>& m) {
  Matrix<float> t(m.cols(), m.rows());
  for (std::int64_t r = 0; r < m.rows(); ++r)
    for (std::int64_t c = 0; c < m.cols(); ++c) t(c, r) = m(r, c);
  return t;
}

// A density of 0.6 has rows of more blocks than are transposed at once, 0.02 has empty rows.
void expect_same_bits(double density, std::int64_t z) {
  SCOPED_TRACE(testing::Message() << "density " << density << ", batch " << z);
  const auto executor = make_executor(ExecutorKind::Threads, 2);
  const Problem problem{.size = {1, kX, kY, z},
                        .block = {16, 16},
                        .density = density,
                        .data_type = DataType::Float,
                        .grad_a = true};
  HostLayer layer(problem, kCpu, *executor);
  layer.set_weights(sparse::random_pattern(kX, kY, {16, 16}, density, 7));
  const Matrix<float> s = random_matrix<float>(kY, z, 5), s_first = transpose_of(s);
  const Matrix<float> q_grad = random_matrix<float>(kX, z, 6), q_grad_first = transpose_of(q_grad);
  Matrix<float> q(kX, z), q_mixed(kX, z), q_first(z, kX), s_grad(kY, z), s_grad_first(z, kY);
  const auto s_turned = s_first.view().transposed();
  const auto biases = random_matrix<float>(1, kX, 8).elements();
  const std::vector<float> bias(biases.begin(), biases.end());
  for (const PassOptions& after :
       {PassOptions{}, PassOptions{.bias = bias, .activation = Activation::Relu}}) {
    layer.forward<float>(s.view(), q.view(), after);
    layer.forward<float>(s_turned, q_first.view().transposed(), after);
    layer.forward<float>(s_turned, q_mixed.view(), after);
    EXPECT_EQ(transpose_of(q), q_first);
    EXPECT_EQ(q, q_mixed);
  }
  layer.grad_a<float>(q_grad.view(), s_grad.view());
  layer.grad_a<float>(q_grad_first.view().transposed(), s_grad_first.view().transposed());
  EXPECT_EQ(transpose_of(s_grad), s_grad_first);
}

TEST(HostBatchFirst, HasTheBitsOfTransposedOperandsOnEveryTarget) {
  for (const auto& target : codelets::internal::simd_targets()) {
    if (!target.runs_here) continue;
    SCOPED_TRACE(target.name);
    const UseSimdTarget use(target);
    for (const double density : {0.02, 0.6})
      for (const std::int64_t z : {31, 32, 41, 48, 70, 71}) expect_same_bits(density, z);
  }
}

// Samples of a layer with very few weights are read as they are stored: each has the bits of a call
// with that sample alone. More samples than one step has are computed in several.
TEST(HostBatchFirst, ReadsSamplesOfFewWeightsOneByOne) {
  constexpr std::int64_t kOutputs = 10, kInputs = 1024, kSamples = 150, kPlanned = 64;
  const auto executor = make_executor(ExecutorKind::Threads, 2);
  const Problem problem{.size = {1, kOutputs, kInputs, kPlanned}, .data_type = DataType::Float};
  HostLayer layer(problem, kCpu, *executor);
  layer.set_weights(sparse::random_pattern(kOutputs, kInputs, {1, 1}, 0.02, 7));
  const Matrix<float> s = random_matrix<float>(kSamples, kInputs, 5);
  Matrix<float> q(kSamples, kOutputs), q_turned(kOutputs, kSamples), one(kOutputs, 1);
  const std::vector<float> bias(kOutputs, 0.25f);
  const PassOptions after{.bias = bias, .activation = Activation::Relu};
  std::int64_t steps = 0;
  PassOptions counted = after;
  counted.progress = [&](const auto&) { ++steps; };
  layer.forward<float>(s.view().transposed(), q.view().transposed(), counted);
  EXPECT_EQ(steps, 3);
  const MatrixView<const float> samples = s.view().transposed();
  layer.forward<float>(samples, q_turned.view(), after);
  for (std::int64_t z = 0; z < kSamples; ++z) {
    layer.forward<float>(samples.sub({0, kInputs}, {z, z + 1}), one.view(), after);
    for (std::int64_t r = 0; r < kOutputs; ++r) {
      ASSERT_EQ(q(z, r), one(r, 0)) << "sample " << z;
      ASSERT_NEAR(q_turned(r, z), one(r, 0), 1e-4);
    }
  }
}

}  // namespace
}  // namespace tessera::host
