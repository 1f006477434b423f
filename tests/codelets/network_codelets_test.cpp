#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <variant>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/codelets/activation.hpp"
#include "tessera/codelets/cost/network_cycles.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/codelets/loss.hpp"
#include "tessera/codelets/optimiser.hpp"

// The codelets of a network against plain loops in double precision.
namespace tessera::codelets {
namespace {

// The rounding of a chain of some ten operations in float, and one to the type of the result.
template <class T>
double bound(double exact) {
  const Precision to = precision_of(data_type_of<T>());
  return (std::abs(exact) + 1) * (to.unit + 16 * 0x1p-24) + to.smallest;
}

template <class T>
std::vector<T> drawn(Random& random, std::int64_t count, double scale) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(T(float(scale * (2 * random.unit() - 1))));
  return values;
}

double activated(const ActivationRule& rule, double v) {
  if (rule.kind == Activation::Relu) return std::min(std::max(v, 0.0), double(rule.cap));
  if (rule.kind == Activation::None) return v;
  return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
}

// The slope of `activated`, by a difference of points close to each other.
double slope(const ActivationRule& rule, double v) {
  constexpr double kStep = 1e-5;
  return (activated(rule, v + kStep) - activated(rule, v - kStep)) / (2 * kStep);
}

const std::array kRules = {ActivationRule{}, ActivationRule{Activation::Relu},
                           ActivationRule{Activation::Relu, 1.5f},
                           ActivationRule{Activation::Gelu}};

template <class T>
class NetworkCodelets : public testing::Test {};
using Types = testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(NetworkCodelets, Types);

TYPED_TEST(NetworkCodelets, AddTheBiasOfEachRowOfARunAndActivate) {
  using T = TypeParam;
  for (const ActivationRule& rule : kRules)
    for (const ElementRun run : {ElementRun{0, 12, 4}, ElementRun{3, 11, 4}, ElementRun{5, 6, 4},
                                 ElementRun{7, 7, 4}, ElementRun{2, 9, 1}}) {
      Random random(3);
      const std::vector<T> before = drawn<T>(random, run.size(), 3);
      const std::vector<float> bias = drawn<float>(random, run.rows(), 1);
      std::vector<T> sums = before, results(before.size());
      add_bias_and_activate(run, bias.data(), rule, sums.data(), results.data());
      for (std::int64_t i = 0; i < run.size(); ++i) {
        const auto at = std::size_t(i);
        const std::int64_t row = (run.begin + i) / run.columns - run.first_row();
        const double sum = double(float(before[at])) + double(bias[std::size_t(row)]);
        EXPECT_NEAR(float(sums[at]), sum, bound<T>(sum));
        const double result = activated(rule, double(float(sums[at])));
        EXPECT_NEAR(float(results[at]), result, bound<T>(result)) << to_string(rule.kind);
      }
    }
}

// Loops of vectors widen halves without branches. Without bias and activation every value keeps its
// bits, whatever it is.
TEST(NetworkCodeletsOfHalves, KeepTheBitsOfEveryHalf) {
  std::vector<Half> sums(1 << 16);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = Half::from_bits(std::uint16_t(i));
  std::vector<Half> results(sums.size());
  add_bias_and_activate<Half>({0, 1 << 16, 1 << 16}, nullptr, {}, sums.data(), results.data());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const float exact = float(Half::from_bits(std::uint16_t(i)));
    if (std::isnan(exact)) {
      EXPECT_TRUE(std::isnan(float(results[i]))) << i;
      continue;
    }
    ASSERT_EQ(results[i].bits, i == 0x8000 ? 0 : i);  // -0 + 0 is 0
    ASSERT_EQ(results[i].bits, sums[i].bits);
  }
}

TYPED_TEST(NetworkCodelets, MultiplyByTheSlopeOfTheActivation) {
  using T = TypeParam;
  for (const ActivationRule& rule : kRules) {
    Random random(4);
    const std::vector<T> sums = drawn<T>(random, 50, 3), before = drawn<T>(random, 50, 1);
    std::vector<T> kept = sums, gradients = before, copy = sums;
    if (!rule.keeps_sums())
      add_bias_and_activate({0, 50, 50}, nullptr, rule, copy.data(), kept.data());
    multiply_by_derivative(50, rule, kept.data(), gradients.data());
    for (std::size_t i = 0; i < 50; ++i) {
      const double exact = double(float(before[i])) * slope(rule, double(float(sums[i])));
      EXPECT_NEAR(float(gradients[i]), exact, bound<T>(exact) + 1e-6) << to_string(rule.kind);
    }
  }
}

TYPED_TEST(NetworkCodelets, SumThePartOfEachRowInARun) {
  using T = TypeParam;
  Random random(5);
  const std::vector<T> values = drawn<T>(random, 9, 1);
  std::vector<float> sums(4, 99);
  sum_rows({3, 12, 4}, values.data(), sums.data());
  const auto part = [&](std::size_t begin, std::size_t end) {
    double sum = 0;
    for (; begin < end; ++begin) sum += double(float(values[begin]));
    return sum;
  };
  EXPECT_NEAR(sums[0], part(0, 1), 1e-6);
  EXPECT_NEAR(sums[1], part(1, 5), 1e-6);
  EXPECT_NEAR(sums[2], part(5, 9), 1e-6);
  EXPECT_EQ(sums[3], 99);
}

// Nobody writes the padding of a result, so it may hold NaN. The run begins and ends within rows,
// once within their padding.
TYPED_TEST(NetworkCodelets, LeaveThePaddingOfRowsOut) {
  using T = TypeParam;
  const T unwritten = T(std::numeric_limits<float>::quiet_NaN());
  const std::vector<T> values = {unwritten, T(1.0f), T(2.0f), unwritten, unwritten, T(4.0f)};
  const ElementRun run{3, 9, 4, 2};  // columns 3 of row 0, 0 to 3 of row 1 and 0 of row 2
  std::vector<float> sums(4, 99);
  sum_rows(run, values.data(), sums.data());
  EXPECT_EQ(sums, (std::vector<float>{0, 3, 4, 99}));

  std::vector<T> kept = values, results(6, T(7.0f));
  const std::vector<float> bias{1, 1, 1};
  add_bias_and_activate(run, bias.data(), ActivationRule{}, kept.data(), results.data());
  const std::vector<float> expected{7, 2, 3, 7, 7, 5};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(float(results[i]), expected[i]) << i;
}

// The gradient of a loss is its slope along each output.
template <class LossOf>
void expect_slopes(const std::vector<double>& outputs, const std::vector<double>& gradients,
                   double tolerance, LossOf&& loss_of) {
  constexpr double kStep = 1e-5;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::vector<double> above = outputs, below = outputs;
    above[i] += kStep;
    below[i] -= kStep;
    EXPECT_NEAR(gradients[i], (loss_of(above) - loss_of(below)) / (2 * kStep), tolerance) << i;
  }
}

template <class T>
std::vector<double> widened(const std::vector<T>& values) {
  std::vector<double> result;
  for (const T v : values) result.push_back(double(float(v)));
  return result;
}

TYPED_TEST(NetworkCodelets, TakeTheCrossEntropyOfASoftmaxAndItsSlopes) {
  using T = TypeParam;
  constexpr LossPart kPart{5, 3, 7};
  const std::array<std::int32_t, 3> labels = {4, 0, 2};
  Random random(6);
  std::vector<T> outputs = drawn<T>(random, 15, 4);
  const auto loss_of = [&](const std::vector<double>& at) {
    double loss = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      double sum = 0;
      for (std::size_t r = 0; r < 5; ++r) sum += std::exp(at[r * 3 + c]);
      loss += std::log(sum) - at[std::size_t(labels[c]) * 3 + c];
    }
    return loss / 7;
  };
  const std::vector<double> before = widened(outputs);
  const float loss = softmax_cross_entropy(kPart, labels.data(), outputs.data());
  EXPECT_NEAR(loss, loss_of(before), 1e-5);
  expect_slopes(before, widened(outputs), bound<T>(0.2), loss_of);
}

TYPED_TEST(NetworkCodelets, DoNotOverflowInASoftmaxOfLargeOutputs) {
  using T = TypeParam;
  std::vector<T> outputs = {T(60000.0f), T(-60000.0f)};
  const std::int32_t label = 1;
  const float loss = softmax_cross_entropy({2, 1, 1}, &label, outputs.data());
  EXPECT_NEAR(loss, 120000, 1000);
  EXPECT_EQ(float(outputs[0]), 1);
  EXPECT_EQ(float(outputs[1]), -1);
}

TYPED_TEST(NetworkCodelets, TakeTheMeanSquaredErrorAndItsSlopes) {
  using T = TypeParam;
  Random random(7);
  std::vector<T> outputs = drawn<T>(random, 12, 1);
  const std::vector<T> targets = drawn<T>(random, 12, 1);
  const auto loss_of = [&](const std::vector<double>& at) {
    double loss = 0;
    for (std::size_t i = 0; i < at.size(); ++i)
      loss += (at[i] - double(float(targets[i]))) * (at[i] - double(float(targets[i])));
    return loss / (4 * 9);
  };
  const std::vector<double> before = widened(outputs);
  EXPECT_NEAR(mean_squared_error({4, 3, 9}, targets.data(), outputs.data()), loss_of(before), 1e-5);
  expect_slopes(before, widened(outputs), bound<T>(0.1), loss_of);
}

TYPED_TEST(NetworkCodelets, MakeTheStepsOfEveryOptimiser) {
  using T = TypeParam;
  for (const Rule& rule :
       {Rule(Sgd{0.1}), Rule(Sgd{0.1, 0.9}), Rule(AdaGrad{0.1, 1e-8}), Rule(Adam{0.1})}) {
    const Optimiser optimiser{rule};
    Random random(8);
    double m = 0, v = 0;
    std::vector<float> first(1), second(1);
    const std::array both = {first.data(), second.data()};
    const auto states = std::span(both).first(std::size_t(states_of(optimiser)));
    std::vector<T> value = {T(0.5f)};
    for (int t = 1; t <= 5; ++t) {
      const std::vector<T> gradient = drawn<T>(random, 1, 1);
      const double g = double(float(gradient[0])), before = double(float(value[0]));
      double change = -0.1 * g;
      if (rule == Rule(Sgd{0.1, 0.9})) change = m = 0.9 * m - 0.1 * g;
      if (std::holds_alternative<AdaGrad>(rule)) change = -0.1 * g / (std::sqrt(m += g * g) + 1e-8);
      if (std::holds_alternative<Adam>(rule)) {
        m = 0.9 * m + 0.1 * g;
        v = 0.999 * v + 0.001 * g * g;
        change = -0.1 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t)) * m /
                 (std::sqrt(v) + 1e-8);
      }
      update_values<T>(optimiser, t, std::span<const T>(gradient), states, value.data());
      EXPECT_NEAR(float(value[0]), before + change, bound<T>(before)) << name_of(optimiser) << t;
    }
  }
}

TEST(Optimiser, RefusesNumbersThatFloatsDoNotHoldInTheirRanges) {
  EXPECT_NO_THROW(check_in_float(Optimiser{}));
  for (const Rule& bad :
       {Rule(Sgd{-1}), Rule(Sgd{NAN}), Rule(Sgd{0.1, 1}), Rule(Adam{.beta1 = -0.1}),
        Rule(Adam{.beta2 = 1}), Rule(Adam{.epsilon = 0}), Rule(Adam{.beta2 = 1 - 1e-9}),
        Rule(Adam{.epsilon = 1e-50}), Rule(Sgd{1e300})})
    EXPECT_THROW(check_in_float(Optimiser{bad}), Error);
  EXPECT_NO_THROW(check(Optimiser{Adam{.beta2 = 1 - 1e-9}}));
}

TEST(ApplyGelu, AgreesWithItsFormulaEverywhere) {
  std::vector<float> values;
  for (int i = -4000; i <= 4000; ++i) values.push_back(float(i) / 128);
  for (const float v : {1e-30f, -1e-30f, 1e10f, -1e10f, 1e38f, -1e38f, INFINITY, -INFINITY, 0.0f})
    values.push_back(v);
  std::vector<float> got = values;
  apply_gelu(got.data(), std::ssize(got));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double v = values[i], exact = v < -40 ? 0 : v > 40 ? v : activated({Activation::Gelu}, v);
    if (std::isinf(exact)) {
      EXPECT_EQ(got[i], values[i]);
    } else {
      EXPECT_NEAR(got[i], exact, std::max(0x1p-20 * std::abs(exact), 0x1p-33)) << v;
    }
    float alone = values[i];
    apply_gelu(&alone, 1);
    EXPECT_EQ(alone, got[i]);
  }
  float no_number = NAN;
  apply_gelu(&no_number, 1);
  EXPECT_TRUE(std::isnan(no_number));
}

// Six workers. 100 bytes at the end are 13 stores of 8 bytes; 12 rows of 9 bytes give every worker
// two rows of two stores.
TEST(ClearPaddingCycles, AreThoseOfTheEndAndOfTheRows) {
  EXPECT_EQ(clear_padding_cycles(0, 0, 9, 6), Cycles(0));
  EXPECT_EQ(clear_padding_cycles(0, 12, 0, 6), Cycles(0));
  EXPECT_EQ(clear_padding_cycles(100, 0, 9, 6), zero_cycles(100, 6));
  EXPECT_EQ(clear_padding_cycles(0, 12, 9, 6), Cycles(6 * (15 + 2 * (3 + 2))));
  EXPECT_EQ(clear_padding_cycles(100, 12, 9, 6),
            zero_cycles(100, 6) + clear_padding_cycles(0, 12, 9, 6));
}

}  // namespace
}  // namespace tessera::codelets
