// Steps on plain lists, against loops of a few lines.

#include "tessera/train/optim/values.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/tests/support/failing_allocations.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/train/optim/learning_rate.hpp"

namespace tessera::train {
namespace {

using testing::HasSubstr;

std::vector<double> random_values(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(2 * random.unit() - 1);
  return values;
}

// Changes w with the gradient g in step t, and its moments m and v.
using Move = std::function<void(double& w, double g, double& m, double& v, double t)>;

void expect_rule(const Optimiser& optimiser, std::int64_t states, const Move& rule) {
  const auto executor = make_executor(2);
  std::vector<double> values = random_values(50, 1), wanted = values, m(50), v(50);
  auto state = make_value_state<double>(optimiser, 50);
  EXPECT_EQ(std::ssize(state.arrays), states);
  for (int t = 1; t <= 4; ++t) {
    const std::vector<double> gradients = random_values(50, std::uint64_t(t) + 1);
    step<double>(optimiser, values, gradients, state, *executor);
    for (std::size_t i = 0; i < 50; ++i) {
      rule(wanted[i], gradients[i] * optimiser.rescale + optimiser.weight_decay * wanted[i], m[i],
           v[i], t);
      EXPECT_NEAR(values[i], wanted[i], 1e-13) << name_of(optimiser) << " step " << t;
    }
  }
}

TEST(ValueStep, HasTheBitsOfOneStepInAnyParts) {
  for (const Optimiser& optimiser :
       {Optimiser{.rule = TorchSgd{0.1, 0.9}, .weight_decay = 0.01}, Optimiser{.rule = Adam{}}}) {
    const auto executor = make_executor(1);
    std::vector<double> whole = random_values(50, 1), parts = whole;
    auto state = make_value_state<double>(optimiser, 50), part_state = state;
    for (int t = 1; t <= 3; ++t) {
      const std::vector<double> gradients = random_values(50, std::uint64_t(t) + 1);
      step<double>(optimiser, whole, gradients, state, *executor);
      const ValueStep<double> change(optimiser, gradients, part_state);
      for (const auto& [first, count] : {std::pair{30, 20}, {0, 1}, {1, 0}, {1, 29}})
        change(std::span(parts).subspan(std::size_t(first), std::size_t(count)), first);
    }
    EXPECT_EQ(parts, whole) << name_of(optimiser);
    EXPECT_EQ(part_state, state);
  }
}

TEST(ValueStep, RefusesAnOptimiserOutOfRange) {
  const Optimiser wrong{.rule = TorchSgd{.momentum = 1}};
  EXPECT_THROW(make_value_state<float>(wrong, 5), Error);
  auto state = make_value_state<float>({.rule = TorchSgd{.momentum = 0.9}}, 5);
  const auto before = state;
  const std::vector<float> five(5);
  EXPECT_THROW(ValueStep<float>(wrong, five, state), Error);
  EXPECT_EQ(state, before);
}

TEST(ValueStep, RefusesGradientsAndStatesOfOtherLengths) {
  const Optimiser optimiser{.rule = TorchSgd{}};
  auto state = make_value_state<float>(optimiser, 5);
  const auto before = state;
  const std::vector<float> four(4);
  EXPECT_THAT(test::message_of([&] { ValueStep<float>(optimiser, four, state); },
                               ErrorCode::InvalidArgument),
              HasSubstr("5 numbers in a state; there must be 4"));
  EXPECT_EQ(state, before);
}

TEST(ValueStep, Nesterov) {
  expect_rule({.rule = Nesterov{0.1, 0.9}, .rescale = 0.5, .weight_decay = 0.01}, 1,
              [](double& w, double g, double& m, double&, double) {
                m = 0.9 * m - 0.1 * g;
                w += 0.9 * m - 0.1 * g;
              });
}

TEST(ValueStep, TorchSgd) {
  expect_rule({.rule = TorchSgd{0.1, 0.9}, .weight_decay = 0.01}, 1,
              [](double& w, double g, double& m, double&, double) {
                m = 0.9 * m + g;
                w -= 0.1 * m;
              });
}

TEST(ValueStep, AdamWDecaysApartFromTheMoments) {
  expect_rule({.rule = AdamW{.learning_rate = 0.1, .decay = 0.05}}, 2,
              [](double& w, double g, double& m, double& v, double t) {
                w -= 0.1 * 0.05 * w;
                m = 0.9 * m + 0.1 * g;
                v = 0.999 * v + 0.001 * g * g;
                w -= 0.1 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t)) * m /
                     (std::sqrt(v) + 1e-8);
              });
}

TEST(ValueStep, HasTheSameBitsForAnyNumberOfThreads) {
  constexpr std::int64_t kCount = 40001;
  const std::vector<double> start = random_values(kCount, 1), gradients = random_values(kCount, 2);
  for (const Optimiser& optimiser :
       {Optimiser{.rule = Sgd{0.1, 0.9}, .weight_decay = 0.01}, Optimiser{.rule = Sgd{}},
        Optimiser{.rule = Adam{}, .clip = 0.5}, Optimiser{.rule = AdaGrad{}},
        Optimiser{.rule = Nesterov{}}, Optimiser{.rule = TorchSgd{}}, Optimiser{.rule = AdamW{}}}) {
    std::vector<double> of_one_thread;
    for (const int threads : {1, 2, 3, 7}) {
      const auto executor = make_executor(ExecutorKind::Threads, threads);
      std::vector<double> values = start;
      auto state = make_value_state<double>(optimiser, kCount);
      for (int t = 0; t < 3; ++t) step<double>(optimiser, values, gradients, state, *executor);
      if (threads == 1) of_one_thread = values;
      EXPECT_EQ(values, of_one_thread) << name_of(optimiser) << ", " << threads << " threads";
    }
    EXPECT_NE(of_one_thread, start) << name_of(optimiser);
  }
}

TEST(ValueStep, AllocatesNothing) {
  const auto executor = make_executor(1);
  const Optimiser optimiser{.rule = AdamW{}};
  std::vector<float> values(100000, 1), gradients(100000, 1);
  auto state = make_value_state<float>(optimiser, 100000);
  const long before = test::allocations();
  step<float>(optimiser, values, gradients, state, *executor);
  EXPECT_EQ(test::allocations(), before);
}

TEST(ValueStep, RefusesListsOfOtherLengthsAndChangesNothing) {
  const auto executor = make_executor(1);
  const Optimiser optimiser{.rule = TorchSgd{}};
  std::vector<float> values(5, 1);
  const std::vector<float> gradients(5, 1), few(4, 1);
  auto state = make_value_state<float>(optimiser, 5), none = make_value_state<float>({}, 5),
       short_state = make_value_state<float>(optimiser, 4);
  const auto refusal = [&](const std::vector<float>& g, ValueState<float>& s) {
    return test::message_of([&] { step<float>(optimiser, values, g, s, *executor); },
                            ErrorCode::InvalidArgument);
  };
  EXPECT_THAT(refusal(few, state), HasSubstr("4 gradients; there must be 5"));
  EXPECT_THAT(refusal(gradients, none), HasSubstr("0 arrays of state; there must be 1"));
  EXPECT_THAT(refusal(gradients, short_state), HasSubstr("4 numbers in a state"));
  EXPECT_EQ(values, std::vector<float>(5, 1));
  EXPECT_EQ(state, make_value_state<float>(optimiser, 5));
}

// Figures computed by hand from the formulas: eight weights of 1 after two steps.
struct TwoSteps {
  std::vector<double> weights;
  ValueState<double> state;
};

TwoSteps two_steps(const Optimiser& optimiser) {
  const auto executor = make_executor(1);
  TwoSteps result{std::vector<double>(8, 1), make_value_state<double>(optimiser, 8)};
  for (const std::vector<double>& gradients :
       {std::vector<double>{0, 0, 1, 2, 4, 5, 0, 0}, {1, 1, 0, 0, -1, 2, 0, 0}})
    step<double>(optimiser, result.weights, gradients, result.state, *executor);
  return result;
}

testing::Matcher<std::vector<double>> near(const std::vector<double>& wanted) {
  return testing::Pointwise(testing::DoubleNear(1e-8), wanted);
}

TEST(ValueStep, HasTheFiguresOfTheFormulas) {
  EXPECT_THAT(two_steps({.rule = Sgd{}}).weights, near({.99, .99, .99, .98, .97, .93, 1, 1}));
  EXPECT_THAT(two_steps({.rule = Sgd{}, .weight_decay = .1}).weights,
              near({.988001, .988001, .988011, .978021, .968041, .928051, .998001, .998001}));
  EXPECT_THAT(two_steps({.rule = Sgd{.momentum = .9}, .weight_decay = .1}).weights,
              near({.987101, .987101, .978111, .959121, .931141, .882151, .997101, .997101}));
  EXPECT_THAT(two_steps({.rule = Adam{}}).weights,
              near({.999255863, .999255863, .998329942, .998329942, .998530532, .998101425, 1, 1}));
}

TEST(ValueStep, KeepsTheStatesOfTheFormulas) {
  const TwoSteps momentum = two_steps({.rule = Sgd{.momentum = .9}});
  EXPECT_THAT(momentum.weights, near({.99, .99, .981, .962, .934, .885, 1, 1}));
  EXPECT_THAT(momentum.state.arrays[0], near({-.01, -.01, -.009, -.018, -.026, -.065, 0, 0}));
  const TwoSteps adagrad = two_steps({.rule = AdaGrad{}});
  EXPECT_THAT(adagrad.weights, near({.99, .99, .99, .99, .992425356, .986286094, 1, 1}));
  EXPECT_THAT(adagrad.state.arrays[0], near({1, 1, 1, 4, 17, 29, 0, 0}));
}

TEST(ValueStep, AddsDecayAfterClipping) {
  const auto executor = make_executor(1);
  std::vector<double> weight{10};
  auto none = make_value_state<double>({}, 1);
  // g = clip(0.5 * 8, 1) + 0.1 * 10 = 2; clipping the sum would give 1.
  step<double>({.rule = Sgd{.learning_rate = 1}, .rescale = .5, .clip = 1, .weight_decay = .1},
               weight, std::vector<double>{8}, none, *executor);
  EXPECT_EQ(weight[0], 8);
  step<double>({.rule = Sgd{}, .clip = 0}, weight, std::vector<double>{8}, none, *executor);
  EXPECT_EQ(weight[0], 8);
}

TEST(Optimiser, RefusesNumbersOutsideTheirRange) {
  const double nan = std::nan("");
  const auto refused = [](const Optimiser& optimiser, const std::string& text) {
    EXPECT_THAT(test::message_of([&] { check(optimiser); }, ErrorCode::InvalidArgument),
                HasSubstr(text));
  };
  refused({.rule = Sgd{.learning_rate = -1}}, "learning_rate is -1");
  refused({.rule = Sgd{.momentum = 1}}, "momentum is 1");
  refused({.rule = Adam{.learning_rate = nan}}, "learning_rate is nan");
  refused({.rule = Adam{.beta1 = 1}}, "beta1 is 1");
  refused({.rule = Adam{.beta2 = -.1}}, "beta2");
  refused({.rule = Adam{.epsilon = 0}}, "epsilon is 0");
  refused({.rule = AdaGrad{.epsilon = -1}}, "epsilon is -1");
  refused({.rule = AdaGrad{}, .weight_decay = .1}, "0 for adagrad");
  refused({.rule = Sgd{}, .rescale = nan}, "rescale is nan");
  refused({.rule = Sgd{}, .clip = -1}, "clip is -1");
  refused({.rule = Sgd{}, .weight_decay = nan}, "weight_decay is nan");
  EXPECT_NO_THROW(check(Optimiser{.rule = Adam{}, .rescale = -1, .clip = 0}));
}

TEST(Optimiser, OfAdamWHasNoOtherDecay) {
  EXPECT_THAT(test::message_of([] { check(Optimiser{.rule = AdamW{}, .weight_decay = 0.1}); },
                               ErrorCode::InvalidArgument),
              HasSubstr("0 for adamw"));
  EXPECT_THROW(check(Optimiser{.rule = AdamW{.decay = -1}}), Error);
  EXPECT_THROW(check(Optimiser{.rule = TorchSgd{.momentum = 1}}), Error);
  EXPECT_THROW(check(Optimiser{.rule = Nesterov{.learning_rate = -1}}), Error);
  EXPECT_EQ(std::get<AdamW>(with_learning_rate(Optimiser{.rule = AdamW{}}, 0.5).rule).learning_rate,
            0.5);
}

TEST(LearningRate, FallsAsItIsTold) {
  EXPECT_EQ((LearningRate{.first = 0.1}.at(1000)), 0.1);
  const LearningRate steps{.first = 1, .decay = StepRate{10, 0.5}};
  EXPECT_EQ(steps.at(10), 1);
  EXPECT_EQ(steps.at(11), 0.5);
  EXPECT_EQ(steps.at(21), 0.25);
  const LearningRate cosine{.first = 0.1, .decay = CosineRate{100}};
  EXPECT_EQ(cosine.at(1), 0.1);
  EXPECT_NEAR(cosine.at(51), 0.05, 1e-15);
  EXPECT_NEAR(cosine.at(101), 0, 1e-15);
  EXPECT_EQ(cosine.at(500), cosine.at(101));
  const LearningRate warm{.first = 1, .warm_up = 3};
  EXPECT_EQ(warm.at(1), 0.25);
  EXPECT_EQ(warm.at(3), 0.75);
  EXPECT_EQ(warm.at(4), 1);
}

TEST(LearningRate, IsRefusedOutsideItsRanges) {
  const auto refusal = [](const LearningRate& rate) {
    return test::message_of([&] { check(rate); }, ErrorCode::InvalidArgument);
  };
  EXPECT_THAT(refusal({.first = -1}), HasSubstr("first is -1"));
  EXPECT_THAT(refusal({.first = std::nan("")}), HasSubstr("first is nan"));
  EXPECT_THAT(refusal({.decay = StepRate{0, 0.5}}), HasSubstr("every is 0"));
  EXPECT_THAT(refusal({.decay = StepRate{1, 0}}), HasSubstr("factor is 0"));
  EXPECT_THAT(refusal({.decay = CosineRate{0}}), HasSubstr("steps is 0"));
  EXPECT_THAT(refusal({.warm_up = -1}), HasSubstr("warm_up is -1"));
}

}  // namespace
}  // namespace tessera::train
