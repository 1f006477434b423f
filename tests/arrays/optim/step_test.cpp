// Compares with figures computed by hand from the formulas, and checks refusals.

#include "tessera/arrays/optim/step.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/base/random_matrix.hpp"
#include "tessera/tests/arrays/row_sparse/arrays_for_tests.hpp"
#include "tessera/tests/sparse/drawing.hpp"
#include "tessera/train/optim/values.hpp"

namespace tessera::arrays {
namespace {

using test::raises;
using train::AdaGrad;
using train::Adam;
using train::Optimiser;
using train::Rule;
using train::Sgd;

using Values = std::vector<double>;

const auto kFirst = test::row_sparse<double>({4, 2}, {1, 2}, {1, 2, 4, 5});
const auto kSecond = test::row_sparse<double>({4, 2}, {0, 2}, {1, 1, -1, 2});

struct Trained {
  Array<double> weight = test::ones<double>(4, 2);
  State<double> state;
};

Trained two_steps(const Optimiser& optimiser) {
  Trained trained;
  trained.state = make_state(optimiser, trained.weight);
  step<double>(optimiser, trained.weight, kFirst, trained.state);
  step<double>(optimiser, trained.weight, kSecond, trained.state);
  return trained;
}

void expect_near(const Array<double>& array, const Values& expected, double tolerance = 1e-9) {
  const Values& got = std::get<DenseArray<double>>(array).values;
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], tolerance) << "element " << i;
}

void expect_weight(const Optimiser& optimiser, const Values& expected) {
  expect_near(two_steps(optimiser).weight, expected);
}

TEST(Step, OPT_01_Sgd) {
  const Values expected = {.99, .99, .99, .98, .97, .93, 1, 1};
  expect_weight({.rule = Sgd{}}, expected);
  expect_weight({.rule = Sgd{}, .lazy = false}, expected);
}

TEST(Step, OPT_02_SgdWithDecayLazy) {
  expect_weight({.rule = Sgd{}, .weight_decay = .1},
                {.989, .989, .989, .979, .968041, .928051, 1, 1});
}

TEST(Step, OPT_03_SgdWithDecayStandard) {
  expect_weight({.rule = Sgd{}, .weight_decay = .1, .lazy = false},
                {.988001, .988001, .988011, .978021, .968041, .928051, .998001, .998001});
}

TEST(Step, OPT_04_MomentumLazy) {
  const Trained trained = two_steps({.rule = Sgd{.momentum = .9}});
  expect_near(trained.weight, {.99, .99, .99, .98, .934, .885, 1, 1});
  expect_near(trained.state.arrays[0], {-.01, -.01, -.01, -.02, -.026, -.065, 0, 0});
}

TEST(Step, OPT_05_MomentumStandard) {
  const Trained trained = two_steps({.rule = Sgd{.momentum = .9}, .lazy = false});
  expect_near(trained.weight, {.99, .99, .981, .962, .934, .885, 1, 1});
  expect_near(trained.state.arrays[0], {-.01, -.01, -.009, -.018, -.026, -.065, 0, 0});
}

TEST(Step, OPT_06_MomentumWithDecayLazy) {
  expect_weight({.rule = Sgd{.momentum = .9}, .weight_decay = .1},
                {.989, .989, .989, .979, .931141, .882151, 1, 1});
}

TEST(Step, OPT_07_MomentumWithDecayStandard) {
  expect_weight({.rule = Sgd{.momentum = .9}, .weight_decay = .1, .lazy = false},
                {.987101, .987101, .978111, .959121, .931141, .882151, .997101, .997101});
}

TEST(Step, OPT_08_AdamLazy) {
  expect_weight({.rule = Adam{}},
                {.999255863, .999255863, .999, .999, .998530532, .998101425, 1, 1});
}

TEST(Step, OPT_09_AdamStandard) {
  expect_weight({.rule = Adam{}, .lazy = false},
                {.999255863, .999255863, .998329942, .998329942, .998530532, .998101425, 1, 1});
}

TEST(Step, OPT_10_AdaGrad) {
  for (const bool lazy : {true, false}) {
    const Trained trained = two_steps({.rule = AdaGrad{}, .lazy = lazy});
    expect_near(trained.weight, {.99, .99, .99, .99, .992425356, .986286094, 1, 1}, 1e-8);
    expect_near(trained.state.arrays[0], {1, 1, 1, 4, 17, 29, 0, 0});
  }
}

TEST(Step, RSP_10_SgdWithMomentum) {
  const Optimiser optimiser{.rule = Sgd{.momentum = .01}};
  Trained trained;
  trained.state = make_state(optimiser, trained.weight);
  step<double>(optimiser, trained.weight, kFirst, trained.state);
  expect_near(trained.state.arrays[0], {0, 0, -.01, -.02, -.04, -.05, 0, 0});
  expect_near(trained.weight, {1, 1, .99, .98, .96, .95, 1, 1});
}

TEST(Step, DecayComesAfterClippingAndIsNotClipped) {
  Array<double> weight = test::dense<double>({1}, {10});
  State<double> none;
  // g = clip(0.5 * 8, 1) + 0.1 * 10 = 2; clipping the sum would give 1.
  step<double>({.rule = Sgd{.learning_rate = 1}, .rescale = .5, .clip = 1, .weight_decay = .1},
               weight, test::row_sparse<double>({1}, {0}, {8}), none);
  expect_near(weight, {8});
}

TEST(Step, ClippingAtZeroMakesGradientsZero) {
  Array<double> weight = test::ones<double>(4, 2);
  State<double> none;
  step<double>({.rule = Sgd{}, .clip = 0}, weight, kFirst, none);
  EXPECT_EQ(weight, Array<double>(test::ones<double>(4, 2)));
}

TEST(Step, AnEmptyGradientLeavesLazyWeightsAlone) {
  for (const Optimiser& optimiser :
       {Optimiser{.rule = Sgd{.momentum = .9}, .weight_decay = .1},
        Optimiser{.rule = Adam{}, .weight_decay = .1}, Optimiser{.rule = AdaGrad{}}}) {
    Trained trained = two_steps(optimiser);
    const Trained before = trained;
    step<double>(optimiser, trained.weight, arrays::row_sparse_zeros<double>({4, 2}),
                 trained.state);
    EXPECT_EQ(trained.weight, before.weight);
    EXPECT_EQ(trained.state.arrays, before.state.arrays);
    EXPECT_EQ(trained.state.steps, 3);
  }
}

TEST(Step, ARowSparseWeightWithDenseStateIsUpdatedInFull) {
  const Optimiser lazy{.rule = Adam{}}, standard{.rule = Adam{}, .lazy = false};
  Array<double> weight = arrays::to_row_sparse(test::ones<double>(4, 2));
  State<double> state = make_state<double>(lazy, test::ones<double>(4, 2));
  step<double>(lazy, weight, kFirst, state);
  step<double>(lazy, weight, kSecond, state);
  EXPECT_EQ(cast_storage(weight, Storage::Dense), two_steps(standard).weight);
}

TEST(Step, ACsrChangesAtItsPatternOnly) {
  const Optimiser optimiser{.rule = Sgd{.learning_rate = 1}, .weight_decay = .5};
  Array<float> weight = test::draw({"2.", ".4"});
  State<float> none;
  step<float>(optimiser, weight, test::draw({"1.", ".0"}), none);
  EXPECT_EQ(weight, Array<float>(test::draw({"0.", ".2"})));
}

// A csr weight with a row-sparse gradient changes like the same places of a dense weight.
TEST(Step, ACsrTakesARowSparseGradientAtItsPattern) {
  const Array<float> pattern = test::draw({"1.2", ".3.", "...", "4.5"});
  const auto gradient = test::row_sparse<float>({4, 3}, {0, 2}, {1, 2, 3, 4, 5, 6});
  for (const bool lazy : {true, false})
    for (const auto& rule : std::vector<Rule>{Sgd{}, Sgd{.momentum = .9}, Adam{}, AdaGrad{}}) {
      const double decay = std::holds_alternative<AdaGrad>(rule) ? 0 : .1;
      const Optimiser optimiser{.rule = rule, .weight_decay = decay, .lazy = lazy};
      Array<float> csr = pattern, dense = cast_storage(pattern, Storage::Dense);
      State<float> csr_state = make_state(optimiser, csr), state = make_state(optimiser, dense);
      for (int t = 0; t < 2; ++t) {
        step<float>(optimiser, csr, gradient, csr_state);
        step<float>(optimiser, dense, gradient, state);
      }
      const auto& all = std::get<DenseArray<float>>(dense).values;
      EXPECT_EQ(std::get<sparse::Csr<float>>(csr).values,
                (std::vector<float>{all[0], all[2], all[4], all[9], all[11]}));
      EXPECT_NE(csr, pattern);
    }
}

TEST(Step, OfACsrHasTheBitsOfAStepOnItsValues) {
  constexpr std::int32_t kCount = 101;
  const auto executor = make_executor(1);
  const Matrix<float> start = random_matrix<float>(1, kCount, 1);
  sparse::Csr<float> csr{1, kCount, {}, {0, kCount}, {}, {}};
  for (std::int32_t i = 0; i < kCount; ++i) csr.col.push_back(i);
  csr.values.assign(start.elements().begin(), start.elements().end());
  for (const Optimiser& optimiser :
       {Optimiser{.rule = Sgd{0.1, 0.9}, .weight_decay = 0.01}, Optimiser{.rule = Sgd{}},
        Optimiser{.rule = Adam{}, .clip = 0.5}, Optimiser{.rule = AdaGrad{}},
        Optimiser{.rule = train::Nesterov{}}, Optimiser{.rule = train::TorchSgd{}},
        Optimiser{.rule = train::AdamW{}}}) {
    Array<float> weight = csr;
    State<float> state = make_state<float>(optimiser, weight);
    std::vector<float> values = csr.values;
    auto value_state = train::make_value_state<float>(optimiser, kCount);
    for (int t = 0; t < 3; ++t) {
      step<float>(optimiser, weight, csr, state);
      train::step<float>(optimiser, values, csr.values, value_state, *executor);
    }
    EXPECT_EQ(values, std::get<sparse::Csr<float>>(weight).values) << name_of(optimiser);
    EXPECT_NE(values, csr.values) << name_of(optimiser);
  }
}

TEST(StepRefuses, ArraysThatDoNotFitAndChangesNothing) {
  const Optimiser momentum{.rule = Sgd{.momentum = .9}};
  const auto refused = [&](Array<double> weight, const Array<double>& gradient, State<double> state,
                           const std::string& text) {
    const Array<double> weight_before = weight;
    const State<double> state_before = state;
    EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {text},
                       [&] { step(momentum, weight, gradient, state); }));
    EXPECT_EQ(weight, weight_before);
    EXPECT_EQ(state, state_before);
  };
  const Array<double> weight = test::ones<double>(4, 2);
  const Array<double> rows = arrays::to_row_sparse(test::ones<double>(4, 2));
  const Array<double> partial = kFirst;
  const State<double> state = make_state(momentum, weight);
  refused(weight, test::ones<double>(4, 3), state, "4 x 3");
  refused(weight, kFirst, {}, "keeps 1 arrays of state and 0");
  refused(weight, kFirst, make_state<double>(momentum, test::ones<double>(3, 2)), "3 x 2");
  refused(partial, kFirst, state, "weight stores 2 of 4 rows");
  refused(rows, kFirst, {0, {partial}}, "state stores 2 of 4 rows");
  refused(weight, kFirst, make_state(momentum, rows), "row_sparse gradient and row_sparse state");
  refused(rows, weight, make_state(momentum, rows), "dense gradient");
}

TEST(StepRefuses, IllegalArraysAndOtherPatterns) {
  const Optimiser sgd{.rule = Sgd{}};
  Array<float> weight = test::ones(4, 2), csr = test::draw({"2.", ".4"});
  State<float> none;
  EXPECT_TRUE(raises(ErrorCode::BadInput, {"rows[1] is 4"}, [&] {
    step<float>(sgd, weight, test::row_sparse<float>({4, 2}, {0, 4}, {1, 2, 3, 4}), none);
  }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"another pattern"},
                     [&] { step<float>(sgd, csr, test::draw({"2.", "4."}), none); }));
  EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {"csr weight", "dense gradient"},
                     [&] { step<float>(sgd, csr, test::ones(2, 2), none); }));
  EXPECT_EQ(none.steps, 0);
}

TEST(StepRefuses, NumbersOutsideTheirRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [](const Optimiser& optimiser, const std::string& text) {
    EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {text}, [&] { check(optimiser); })) << text;
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

TEST(Optimiser, HasTheDefaultsOfTheSource) {
  EXPECT_EQ(Sgd{}, (Sgd{.learning_rate = .01, .momentum = 0}));
  EXPECT_EQ(Adam{}, (Adam{.learning_rate = .001, .beta1 = .9, .beta2 = .999, .epsilon = 1e-8}));
  EXPECT_EQ(AdaGrad{}, (AdaGrad{.learning_rate = .01, .epsilon = 1e-7}));
  EXPECT_TRUE(Optimiser{}.lazy);
}

}  // namespace
}  // namespace tessera::arrays
