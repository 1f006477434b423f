#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/verify/self_check.hpp"

// Checksums of what a layer on this computer gives, as it is and with one result changed.
namespace tessera::host {
namespace {

// Small enough that a layer has many cells and panels.
const host::HostCpu kTiny{
    .cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes(1 << 20)};

struct CheckCase {
  BlockShape block;
  DenseChoice dense = DenseChoice::Never;
  Dims size{1, 71, 93, 37};

  std::string name() const {
    return to_string(size) + " block " + std::to_string(block.rows) + "x" +
           std::to_string(block.cols) + (dense == DenseChoice::Always ? " dense" : "") + " seed 3";
  }
};

// All three passes. Weights are +1 and -1 times `scale`; operands are not whole numbers.
template <class T>
struct CheckRun {
  CheckCase of;
  Problem problem{.size = of.size,
                  .block = of.block,
                  .density = 0.2,
                  .data_type = data_type_of<T>(),
                  .grad_a = true,
                  .grad_w = true};
  std::unique_ptr<Executor> executor = make_executor(2);
  HostLayer layer{problem, kTiny, *executor, {.dense = of.dense}};
  sparse::Csr<float> weights;
  Matrix<T> s = random_matrix<T>(of.size.y, of.size.z, 5);
  Matrix<T> q_grad = random_matrix<T>(of.size.x, of.size.z, 6);
  Matrix<T> q{of.size.x, of.size.z}, s_grad{of.size.y, of.size.z};
  sparse::Csr<float> gradient;

  CheckRun(const CheckCase& c, float scale) : of(c) {
    const Dims whole = problem.size_in_blocks();
    weights = sparse::random_pattern(whole.x, whole.y, c.block, 0.2, 3);
    for (float& v : weights.values) v *= scale;
    for (Matrix<T>* operand : {&s, &q_grad})
      for (T& v : operand->elements()) v = T(float(v) * scale);
    layer.set_weights(weights);
    gradient = weights;
    const auto in_s = std::as_const(s).view(), in_q = std::as_const(q_grad).view();
    layer.forward<T>(in_s, q.view());
    layer.grad_a<T>(in_q, s_grad.view());
    layer.grad_w<T>(in_q, in_s, gradient.values);
  }

  verify::Checksums check(Pass pass) const {
    const verify::Rounding rounding = layer.rounding(pass);
    if (pass == Pass::GradW)
      return verify::check_gradient<T>(gradient, gradient.values, q_grad.view(), s.view(),
                                       rounding);
    if (pass == Pass::Fwd) return verify::check_product<T>(weights, s.view(), q.view(), rounding);
    return verify::check_product<T>(sparse::transpose(weights), q_grad.view(), s_grad.view(),
                                    rounding);
  }
};

template <class T>
void expect_sums(const CheckCase& c, float scale) {
  const CheckRun<T> run(c, scale);
  for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW}) {
    const verify::Checksums checksums = run.check(pass);
    EXPECT_TRUE(checksums.ok()) << c.name() << ": " << to_string(checksums);
    const std::int64_t rows_of_blocks = (c.size.x + c.block.rows - 1) / c.block.rows;
    EXPECT_EQ(checksums.compared, pass == Pass::GradW ? rows_of_blocks : c.size.z);
  }
}

TEST(HostChecksums, AddUpInEveryTypeBlockAndPass) {
  for (const DenseChoice dense : {DenseChoice::Never, DenseChoice::Always})
    for (const BlockShape block : {BlockShape{1, 1}, {4, 4}, {3, 5}, {16, 16}})
      for (const float scale : {1.0f, 0.37f}) {
        expect_sums<float>({block, dense}, scale);
        expect_sums<Half>({block, dense}, scale);
        expect_sums<BFloat16>({block, dense}, scale);
      }
}

// The layer says what rounding may do to its results: then no tolerance is left to hide a change.
TEST(HostChecksums, NameRowAndColumnOfAResultThatChanged) {
  CheckRun<float> run({{1, 1}}, 0.37f);
  run.q(17, 3) += 1.0f;
  const verify::Checksums checksums = run.check(Pass::Fwd);
  EXPECT_EQ(checksums.wrong_rows, 1);
  EXPECT_EQ(checksums.first_wrong_row, 17);
  EXPECT_EQ(checksums.first_wrong_col, 3);
  run.gradient.values[0] += 1.0f;
  EXPECT_EQ(run.check(Pass::GradW).wrong_rows, 1);
  run.s_grad(5, 30) = -run.s_grad(5, 30) + 1.0f;
  EXPECT_EQ(run.check(Pass::GradA).first_wrong_row, 5);
}

TEST(HostChecksums, SeeTheLastBitOfAResultOfWholeNumbers) {
  CheckRun<float> run({{1, 1}}, 1.0f);
  for (Matrix<float>* operand : {&run.s, &run.q_grad})
    for (float& v : operand->elements()) v = v < 0 ? -1.0f : 1.0f;
  run.layer.forward<float>(std::as_const(run.s).view(), run.q.view());
  EXPECT_EQ(to_string(run.check(Pass::Fwd)).substr(0, 3), "ok:");
  EXPECT_TRUE(run.check(Pass::Fwd).exact);
  run.q(4, 2) = std::bit_cast<float>(std::bit_cast<std::uint32_t>(run.q(4, 2)) ^ 1u);
  EXPECT_EQ(run.check(Pass::Fwd).first_wrong_row, 4);
}

// The layer keeps sums of its weights, which must follow every change of a value.
TEST(HostChecksums, FollowNewValuesAndPatterns) {
  CheckRun<float> run({{1, 1}}, 0.37f);
  verify::Checksums checksums;
  HostTimes times;
  const auto expect_agreement = [&](const char* change) {
    const layer::PassOptions options{.self_check = &checksums};
    const auto s = std::as_const(run.s).view(), q_grad = std::as_const(run.q_grad).view();
    ASSERT_TRUE(run.layer.forward<float>(s, run.q.view(), options, times)) << change;
    EXPECT_EQ(checksums.recomputed, 0) << change;
    ASSERT_TRUE(run.layer.grad_a<float>(q_grad, run.s_grad.view(), options, times)) << change;
    EXPECT_EQ(checksums.recomputed, 0) << change;
  };
  expect_agreement("set_weights");
  std::vector<float> values(run.weights.values.size(), 0.73f);
  run.layer.set_values(values);
  expect_agreement("set_values");
  run.layer.change_values([](std::span<float> part, std::int64_t) {
    for (float& value : part) value = -0.19f;
  });
  expect_agreement("change_values");
  run.layer.set_weights(run.weights);
  expect_agreement("set_weights again");
}

TEST(Checksums, ThatDoNotAgreeAreAnErrorThatNamesPassAndGroup) {
  EXPECT_NO_THROW(verify::require_agreement(Pass::GradA, 0, {.compared = 9}));
  try {
    verify::require_agreement(
        Pass::GradA, 2, {.compared = 9, .recomputed = 5, .wrong_rows = 1, .first_wrong_row = 4});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::CheckFailed);
    EXPECT_THAT(error.what(),
                testing::HasSubstr("self-check of GradA, group 2: WRONG: 1 rows, first 4"));
    EXPECT_THAT(error.what(), testing::HasSubstr("5 results recomputed"));
  }
}

}  // namespace
}  // namespace tessera::host
