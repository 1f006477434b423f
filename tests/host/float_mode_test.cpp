// Results do not depend on the floating-point mode of the caller: another rounding, or denormal
// numbers that are taken for 0.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/host/gradient_panels.hpp"
#include "tessera/host/gradient_places.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/host/prepared.hpp"
#include "tessera/host/sddmm.hpp"
#include "tessera/host/softmax.hpp"
#include "tessera/host/spmm.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/other_float_mode.hpp"

namespace tessera::host {
namespace {

using test::OtherFloatMode;

constexpr std::int64_t kX = 96, kY = 80, kZ = 64;
const HostCpu kTiny{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};

// Operands so small that sums of their products are denormal.
struct Small {
  sparse::Csr<float> weights = sparse::random_pattern(kX, kY, {1, 1}, 0.3, 1);
  Matrix<float> s = random_matrix<float>(kY, kZ, 2), q_grad = random_matrix<float>(kX, kZ, 3);

  Small() {
    for (float& v : weights.values) v *= 0.37e-20f;
    for (float& v : s.elements()) v *= 1e-20f;
    for (float& v : q_grad.elements()) v *= 1e-20f;
  }
  CompressedRows<float, std::int32_t, std::int64_t> a() const {
    return {kX, kY, {1, 1}, weights.row_begin, weights.col, weights.values};
  }
  Problem problem() const {
    return {.size = {1, kX, kY, kZ},
            .block = {1, 1},
            .density = 0.3,
            .data_type = DataType::Float,
            .grad_a = true,
            .grad_w = true};
  }
};

using Run = std::function<std::vector<float>(Executor&)>;
struct Call {
  std::string name;
  Run run;
};

std::vector<float> all_of(const Matrix<float>& m) {
  return {m.elements().begin(), m.elements().end()};
}

std::vector<float> layer_results(const Small& in, Executor& executor) {
  HostLayer layer(in.problem(), kTiny, executor);
  layer.set_weights(in.weights);
  Matrix<float> q(kX, kZ), s_grad(kY, kZ);
  std::vector<float> gradients(in.weights.values.size());
  layer.forward<float>(in.s.view(), q.view());
  layer.grad_a<float>(in.q_grad.view(), s_grad.view());
  layer.grad_w<float>(in.q_grad.view(), in.s.view(), gradients);
  layer.change_values([](std::span<float> part, std::int64_t) {
    for (float& v : part) v *= 0.3f;
  });
  std::vector<float> all = all_of(q);
  for (const auto& more : {all_of(s_grad), gradients, layer.weights().values})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<Call> calls(const Small& in) {
  return {{"layer", [&](Executor& on) { return layer_results(in, on); }},
          {"spmm",
           [&](Executor& on) {
             Matrix<float> q(kX, kZ);
             spmm<float>(in.a(), in.s.view(), q.view(), on, {.alpha = 0.7f});
             return all_of(q);
           }},
          {"spmv",
           [&](Executor& on) {
             std::vector<float> x(kY, 1e-20f), y(kX);
             spmv<float>(in.a(), std::span<const float>(x), std::span(y), on);
             return y;
           }},
          {"sddmm",
           [&](Executor& on) {
             std::vector<float> out(in.weights.values.size());
             sddmm<float>(in.a(), in.q_grad.view(), in.s.view().transposed(), std::span(out), on,
                          {.alpha = 0.3f});
             return out;
           }},
          {"prepared",
           [&](Executor& on) {
             const Prepared<float> prepared(in.a(), on);
             Matrix<float> q(kX, kZ);
             prepared.spmm(in.s.view(), q.view(), on);
             return all_of(q);
           }},
          {"gradient at places",
           [&](Executor& on) {
             std::vector<float> out(in.weights.values.size());
             gradient_at_places({in.q_grad.view(), in.s.view()},
                                {{1, 1}, in.weights.row_begin, in.weights.col}, on, out);
             return out;
           }},
          {"gradient panel",
           [&](Executor&) {
             const GradientOperands operands{in.q_grad.view(), in.s.view()};
             GradientPanel panel({kX, kY}, {&operands, 1});
             const auto view = panel.compute({0, kX}, {0, kY});
             return std::vector<float>(view.data, view.data + kX * kY);
           }},
          {"softmax", [&](Executor& on) {
             std::vector<float> out(in.weights.values.size());
             softmax_rows(in.weights, in.weights.values, out, on, 1e20f);
             return out;
           }}};
}

TEST(CallersFloatMode, ChangesNoBitOfAnyCallWithAnyNumberOfThreads) {
  const Small in;
  for (const Call& call : calls(in)) {
    const std::vector<float> expected = call.run(*make_executor(1));
    bool has_denormal = call.name == "softmax";
    for (const float v : expected) has_denormal |= v != 0 && std::abs(v) < 1.1754944e-38f;
    EXPECT_TRUE(has_denormal) << call.name << ": the operands show nothing";
    for (const int threads : {1, 4}) {
      const auto made_before = make_executor(threads);
      const OtherFloatMode other;
      const auto made_after = make_executor(threads);
      for (int turn = 0; turn < 2; ++turn) {
        EXPECT_EQ(call.run(*made_before), expected) << call.name << ", threads " << threads;
        EXPECT_EQ(call.run(*made_after), expected) << call.name << ", threads " << threads;
      }
      EXPECT_TRUE(OtherFloatMode::is_on()) << call.name;
    }
  }
}

}  // namespace
}  // namespace tessera::host
