// Bias, ReLU, its derivative and added gradients, against separate loops over the results.

#include "tessera/host/pass_options.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::host {
namespace {

using test::refusal;

const HostCpu kTiny{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};
constexpr std::int64_t kGroups = 2, kX = 40, kY = 48;

struct OptionsCase {
  std::int64_t z = 40;
  BlockShape block;
  HostOptions options;
  bool batch_first = false;
};

std::vector<OptionsCase> all_cases() {
  std::vector<OptionsCase> cases;
  for (const std::int64_t z : {1, 40, 130, 300})
    for (const BlockShape block : {BlockShape{1, 1}, {4, 4}})
      for (const bool batch_first : {false, true}) cases.push_back({z, block, {}, batch_first});
  for (const bool own : {false, true})
    cases.push_back({70, {4, 4}, {.dense = DenseChoice::Always, .own_dense_kernel = own}, own});
  return cases;
}

// A matrix whose view has the features first, in memory of either order.
template <class T>
struct Operand {
  Operand(std::int64_t rows, std::int64_t cols, bool batch_first, std::uint64_t seed)
      : turned(batch_first),
        matrix(batch_first ? random_matrix<T>(cols, rows, seed)
                           : random_matrix<T>(rows, cols, seed)) {}
  MatrixView<T> view() { return turned ? matrix.view().transposed() : matrix.view(); }
  friend bool operator==(const Operand& a, const Operand& b) {
    return std::equal(a.matrix.elements().begin(), a.matrix.elements().end(),
                      b.matrix.elements().begin(), b.matrix.elements().end(), [](T x, T y) {
                        const float v = float(x), w = float(y);
                        return std::bit_cast<std::uint32_t>(v) == std::bit_cast<std::uint32_t>(w) ||
                               (std::isnan(v) && std::isnan(w));
                      });
  }

  bool turned;
  Matrix<T> matrix;
};

template <class T>
struct OptionsRun {
  explicit OptionsRun(const OptionsCase& c)
      : layer({.size = {kGroups, kX, kY, c.z},
               .block = c.block,
               .density = 0.7,
               .data_type = data_type_of<T>(),
               .grad_a = true,
               .grad_w = true},
              kTiny, *executor, c.options),
        s(kGroups * kY, c.z, c.batch_first, 5),
        q_grad(kGroups * kX, c.z, c.batch_first, 6),
        before(kGroups * kY, c.z, c.batch_first, 7),
        q(kGroups * kX, c.z, c.batch_first, 8),
        s_grad(kGroups * kY, c.z, c.batch_first, 9) {
    std::vector<sparse::Csr<float>> weights;
    for (std::uint64_t g = 0; g < kGroups; ++g)
      weights.push_back(sparse::random_pattern(kX, kY, c.block, 0.7, 3 + g));
    layer.set_weights(sparse::checked(weights));
    const Matrix<float> numbers = random_matrix<float>(2, layer.values() + kGroups * kX, 10);
    gradients.assign(numbers.elements().begin(), numbers.elements().begin() + layer.values());
    bias.assign(numbers.elements().end() - kGroups * kX, numbers.elements().end());
    // Numbers at which ReLU and its derivative have to decide.
    before.view()(0, 0) = T(std::numeric_limits<float>::quiet_NaN());
    before.view()(1, 0) = T(-0.0f);
    before.view()(2, 0) = T(0.0f);
    q_grad.view()(3, 0) = T(std::numeric_limits<float>::quiet_NaN());
    s.view()(3, 0) = T(std::numeric_limits<float>::quiet_NaN());
    s.view()(4, 0) = T(-std::numeric_limits<float>::infinity());
    // A sum that becomes -0 in Half only when it is rounded.
    if (c.z > 1)
      for (std::int64_t y = 0; y < kY; ++y) s.view()(y, c.z - 1) = T(0.0f);
    bias[0] = -1e-8f;
  }

  std::unique_ptr<Executor> executor = make_executor(2);
  HostLayer layer;
  Operand<T> s, q_grad, before, q, s_grad;
  std::vector<float> gradients, bias;
};

template <class T>
class HostPassOptions : public testing::Test {};
using AllTypes = testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(HostPassOptions, AllTypes);

template <class T>
void add_bias_and_activate(MatrixView<T> q, const PassOptions& after) {
  for (std::int64_t x = 0; x < q.rows; ++x)
    for (std::int64_t z = 0; z < q.cols; ++z) {
      if (!after.bias.empty()) q(x, z) = T(float(q(x, z)) + after.bias[std::size_t(x)]);
      if (after.activation == Activation::Relu && float(q(x, z)) < 0) q(x, z) = T(0.0f);
      float sum = float(q(x, z));
      if (after.activation != Activation::Gelu) continue;
      codelets::apply_gelu(&sum, 1);
      q(x, z) = T(sum);
    }
}

TYPED_TEST(HostPassOptions, ForwardHasTheBitsOfASeparateLoop) {
  for (const OptionsCase& c : all_cases()) {
    SCOPED_TRACE(testing::Message() << c.z << " columns, block " << c.block.rows);
    OptionsRun<TypeParam> run(c);
    for (const PassOptions& after : {PassOptions{},
                                     {.bias = run.bias},
                                     {.activation = Activation::Relu},
                                     {.bias = run.bias, .activation = Activation::Relu},
                                     {.bias = run.bias, .activation = Activation::Gelu}}) {
      Operand<TypeParam> expected = run.q;
      run.layer.template forward<TypeParam>(run.s.view(), expected.view());
      add_bias_and_activate(expected.view(), after);
      run.layer.template forward<TypeParam>(run.s.view(), run.q.view(), after);
      EXPECT_EQ(run.q, expected) << after.bias.size() << " " << to_string(after.activation);
    }
  }
}

TYPED_TEST(HostPassOptions, GradAHasTheBitsOfASeparateLoop) {
  for (const OptionsCase& c : all_cases()) {
    SCOPED_TRACE(testing::Message() << c.z << " columns, block " << c.block.rows);
    OptionsRun<TypeParam> run(c);
    Operand<TypeParam> expected = run.s_grad;
    run.layer.template grad_a<TypeParam>(run.q_grad.view(), expected.view());
    for (std::int64_t y = 0; y < kGroups * kY; ++y)
      for (std::int64_t z = 0; z < c.z; ++z)
        if (!(float(run.before.view()(y, z)) > 0)) expected.view()(y, z) = TypeParam(0.0f);
    run.layer.template grad_a<TypeParam>(run.q_grad.view(), run.s_grad.view(),
                                         {.where_positive = run.before.view()});
    EXPECT_EQ(run.s_grad, expected);
  }
}

TYPED_TEST(HostPassOptions, GradWHasTheBitsOfASeparateLoop) {
  for (const OptionsCase& c : all_cases()) {
    SCOPED_TRACE(testing::Message() << c.z << " columns, block " << c.block.rows);
    OptionsRun<TypeParam> run(c);
    run.q_grad.view()(3, 0) = TypeParam(1.0f);
    run.s.view()(3, 0) = run.s.view()(4, 0) = TypeParam(1.0f);
    std::vector<float> expected(run.gradients.size());
    run.layer.template grad_w<TypeParam>(run.q_grad.view(), run.s.view(), expected);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = run.gradients[i] + expected[i];
    run.layer.template grad_w<TypeParam>(run.q_grad.view(), run.s.view(), run.gradients,
                                         {.accumulate = Accumulate::Yes});
    EXPECT_EQ(run.gradients, expected);
    run.layer.template grad_w<TypeParam>(run.q_grad.view().sub({0, kGroups * kX}, {0, 0}),
                                         run.s.view().sub({0, kGroups * kY}, {0, 0}), run.gradients,
                                         {.accumulate = Accumulate::Yes});
    EXPECT_EQ(run.gradients, expected) << "no columns add nothing";
  }
}

TYPED_TEST(HostPassOptions, AreAppliedAfterTheSelfCheck) {
  for (const OptionsCase& c : all_cases()) {
    SCOPED_TRACE(testing::Message() << c.z << " columns, block " << c.block.rows);
    OptionsRun<TypeParam> run(c), checked(c);
    for (OptionsRun<TypeParam>* r : {&run, &checked}) {
      r->q_grad.view()(3, 0) = TypeParam(1.0f);
      r->s.view()(3, 0) = r->s.view()(4, 0) = TypeParam(1.0f);
    }
    const PassOptions after{.bias = run.bias, .activation = Activation::Relu};
    const PassOptions derivative{.where_positive = run.before.view()};
    run.layer.template forward<TypeParam>(run.s.view(), run.q.view(), after);
    run.layer.template grad_a<TypeParam>(run.q_grad.view(), run.s_grad.view(), derivative);
    run.layer.template grad_w<TypeParam>(run.q_grad.view(), run.s.view(), run.gradients,
                                         {.accumulate = Accumulate::Yes});
    verify::Checksums sums;
    layer::PassOptions own_after = after, own_derivative = derivative;
    own_after.self_check = own_derivative.self_check = &sums;
    const layer::PassOptions adding{.self_check = &sums, .accumulate = Accumulate::Yes};
    HostTimes times;
    auto& layer = checked.layer;
    EXPECT_TRUE(
        layer.template forward<TypeParam>(checked.s.view(), checked.q.view(), own_after, times));
    EXPECT_TRUE(layer.template grad_a<TypeParam>(checked.q_grad.view(), checked.s_grad.view(),
                                                 own_derivative, times));
    EXPECT_TRUE(layer.template grad_w<TypeParam>(checked.q_grad.view(), checked.s.view(),
                                                 checked.gradients, adding, times));
    EXPECT_EQ(checked.q, run.q);
    EXPECT_EQ(checked.s_grad, run.s_grad);
    EXPECT_EQ(checked.gradients, run.gradients);
  }
}

TEST(HostPassOptionsChecks, ARepairAddsTheGradientsOfOnePass) {
  OptionsRun<float> run({.z = 300, .batch_first = true});  // two panels of columns
  run.q_grad.view()(3, 0) = run.s.view()(3, 0) = run.s.view()(4, 0) = 1.0f;
  const std::vector<float> before = run.gradients;
  int steps = 0;
  verify::Checksums sums;
  layer::PassOptions adding{.self_check = &sums, .repair = true, .accumulate = Accumulate::Yes};
  adding.progress = [&](const verify::Progress&) {  // the first panel is used, so the check fails
    if (++steps == 2) run.s.view()(0, 0) = 50.0f;
  };
  HostTimes times;
  ASSERT_TRUE(
      run.layer.grad_w<float>(run.q_grad.view(), run.s.view(), run.gradients, adding, times));
  EXPECT_FALSE(sums.first_failure.empty());
  std::vector<float> expected(before.size());
  run.layer.grad_w<float>(run.q_grad.view(), run.s.view(), expected);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
  EXPECT_EQ(run.gradients, expected);
}

TEST(HostPassOptionsChecks, AStopBetweenPanelsLeavesGradientsThatAreAddedToAsTheyWere) {
  OptionsRun<float> run({.z = 300});  // two panels of columns
  const std::vector<float> before = run.gradients;
  std::stop_source stop;
  int steps = 0;
  const layer::PassOptions adding{
      .stop = stop.get_token(),
      .progress =
          [&](const verify::Progress&) { return void(++steps == 1 && stop.request_stop()); },
      .accumulate = Accumulate::Yes};
  HostTimes times;
  EXPECT_FALSE(
      run.layer.grad_w<float>(run.q_grad.view(), run.s.view(), run.gradients, adding, times));
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(run.gradients, before);
}

// Panels of dQ are copied if several slices of S read their rows.
TEST(HostPassOptionsChecks, GradientsOfSeveralPanelsAndSlicesAddUpAsThoseOfEachPanel) {
  constexpr std::int64_t kInputs = 256, kZ = 300, kPanel = 160;
  const auto executor = make_executor(2);
  HostLayer layer(
      {.size = {1, kX, kInputs, kZ}, .density = 0.3, .data_type = DataType::Float, .grad_w = true},
      kTiny, *executor);
  const HostCells cells = layer.cells(Pass::GradW);
  ASSERT_EQ(cells.z, kPanel);
  ASSERT_GE(ceil_div(kInputs, cells.y), 4);
  layer.set_weights(sparse::checked(
      std::vector<sparse::Csr<float>>{sparse::random_pattern(kX, kInputs, {1, 1}, 0.3, 3)}));
  const Matrix<float> s = random_matrix<float>(kInputs, kZ, 5);
  const Matrix<float> q_grad = random_matrix<float>(kX, kZ, 6);
  std::vector<float> expected(std::size_t(layer.values())), got = expected;
  HostTimes times;
  for (const Range cols : {Range{0, kPanel}, Range{kPanel, kZ}})
    ASSERT_TRUE(layer.grad_w<float>(
        q_grad.view().sub({0, kX}, cols), s.view().sub({0, kInputs}, cols), expected,
        {.accumulate = cols.begin == 0 ? Accumulate::No : Accumulate::Yes}, times));
  layer.grad_w<float>(q_grad.view(), s.view(), got);
  EXPECT_EQ(got, expected);
}

TEST(HostPassOptionsChecks, RefuseOtherSizesAndSharedMemory) {
  OptionsRun<float> run({});
  const Operand<float> before = run.q;
  EXPECT_EQ(refusal([&] {
              run.layer.forward<float>(run.s.view(), run.q.view(),
                                       {.bias = std::span(run.bias).first(79)});
            }),
            "forward: the bias has 79 numbers; this layer has 80 rows of results");
  EXPECT_NE(refusal([&] {
              run.layer.forward<float>(
                  run.s.view(), run.q.view(),
                  {.bias = std::span(run.q.matrix.elements()).first(std::size_t(kGroups * kX))});
            }),
            "");
  EXPECT_EQ(run.q, before) << "a call that is refused writes nothing";
  EXPECT_EQ(refusal([&] {
              run.layer.grad_a<float>(run.q_grad.view(), run.s_grad.view(),
                                      {.where_positive = run.before.view().sub({0, 96}, {0, 39})});
            }),
            "q_grad has 40 columns and where_positive has 39; both must have those of the batch");
  EXPECT_EQ(refusal([&] {
              run.layer.grad_a<float>(run.q_grad.view(), run.s_grad.view(),
                                      {.where_positive = run.before.view().sub({0, 95}, {0, 40})});
            }),
            "where_positive is 95 x 40; this layer needs 96 rows and any number of columns");
  EXPECT_NE(refusal([&] {
              run.layer.grad_a<float>(run.q_grad.view(), run.s_grad.view(),
                                      {.where_positive = run.s_grad.view()});
            }),
            "");
}

}  // namespace
}  // namespace tessera::host
