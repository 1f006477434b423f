// Runs the option grid of the original's tests against a plain loop that shares no code with the
// optimisers.

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tessera/arrays/optim/step.hpp"
#include "tessera/tests/arrays/row_sparse/arrays_for_tests.hpp"

namespace tessera::arrays {
namespace {

using train::AdaGrad;
using train::Adam;
using train::Optimiser;
using train::Rule;
using train::Sgd;

struct Truth {
  std::vector<double> weight, first, second;
};

double pull(double gradient, double weight, const Optimiser& o) {
  double g = gradient * o.rescale;
  if (o.clip) g = std::min(std::max(g, -*o.clip), *o.clip);
  return g + o.weight_decay * weight;
}

void move_element(const Optimiser& o, int t, double g, std::size_t i, Truth& truth) {
  double &w = truth.weight[i], &m = truth.first[i], &v = truth.second[i];
  g = pull(g, w, o);
  if (const auto* sgd = std::get_if<Sgd>(&o.rule)) {
    m = sgd->momentum * m - sgd->learning_rate * g;
    w += m;
  } else if (const auto* adam = std::get_if<Adam>(&o.rule)) {
    m = adam->beta1 * m + (1 - adam->beta1) * g;
    v = adam->beta2 * v + (1 - adam->beta2) * g * g;
    const double rate = adam->learning_rate * std::sqrt(1 - std::pow(adam->beta2, t)) /
                        (1 - std::pow(adam->beta1, t));
    w -= rate * m / (std::sqrt(v) + adam->epsilon);
  } else {
    const auto& ada = std::get<AdaGrad>(o.rule);
    m += g * g;
    w -= ada.learning_rate * g / (std::sqrt(m) + ada.epsilon);
  }
}

void move_all(const Optimiser& o, int t, const RowSparse<double>& gradient, Truth& truth) {
  const std::set<std::int64_t> touched(gradient.rows.begin(), gradient.rows.end());
  const std::vector<double> dense = to_dense(gradient).values;
  const std::size_t size = std::size_t(gradient.row_size());
  for (std::size_t i = 0; i < dense.size(); ++i)
    if (!o.lazy || touched.contains(std::int64_t(i / size))) move_element(o, t, dense[i], i, truth);
}

// Takes three steps with random gradients; both kinds of weights must end with the plain loop's
// values.
void expect_plain_loop(const test::Dimensions& shape, double density, const Optimiser& optimiser) {
  Random random(/*seed=*/15);
  const auto start = test::random_rows<double>(shape, 1, random);
  Truth truth{start.values, std::vector<double>(start.values.size()),
              std::vector<double>(start.values.size())};
  std::vector<Array<double>> weights = {start};
  Array<double> rows = RowSparse<double>{shape, {}, start.values};
  for (std::int64_t r = 0; r < shape[0]; ++r) std::get<RowSparse<double>>(rows).rows.push_back(r);
  weights.push_back(rows);
  std::vector<State<double>> states;
  for (const auto& weight : weights) states.push_back(make_state(optimiser, weight));
  for (int t = 1; t <= 3; ++t) {
    const auto gradient = to_row_sparse(test::random_rows<double>(shape, density, random));
    for (std::size_t k = 0; k < 2; ++k) step<double>(optimiser, weights[k], gradient, states[k]);
    move_all(optimiser, t, gradient, truth);
  }
  EXPECT_EQ(cast_storage(weights[1], Storage::Dense), weights[0]);
  const auto& got = std::get<DenseArray<double>>(weights[0]).values;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], truth.weight[i], 1e-12) << name_of(optimiser) << " element " << i;
}

TEST(StepGrid, RSP_15_EqualsAPlainLoop) {
  for (const test::Dimensions& shape : {test::Dimensions{3, 4, 5}, {10, 4}, {7}})
    for (const double density : {1.0, 0.5, 0.01, 0.0})
      for (const std::optional<double> clip : {std::optional<double>(), {.4}, {.5}})
        for (const double rescale : {1.0, .14, .8})
          for (const double decay : {0.0, .03, .05, .07})
            for (const bool lazy : {true, false})
              for (const auto& rule : std::vector<Rule>{
                       Sgd{.learning_rate = .1}, Sgd{.learning_rate = .1, .momentum = .9},
                       Adam{.learning_rate = .1}, AdaGrad{.learning_rate = .1}}) {
                if (std::holds_alternative<AdaGrad>(rule) && decay != 0) continue;
                expect_plain_loop(shape, density, {rule, rescale, clip, decay, lazy});
              }
}

// A dense gradient updates every row, whether or not the optimiser is lazy.
TEST(StepGrid, ADenseGradientIsOneWithAllRows) {
  Random random(/*seed=*/4);
  const auto start = test::random_rows<float>({6, 3}, 1, random);
  const auto gradient = test::random_rows<float>({6, 3}, 1, random);
  for (const bool lazy : {true, false})
    for (const auto& rule : std::vector<Rule>{Sgd{}, Sgd{.momentum = .9}, Adam{}, AdaGrad{}}) {
      const Optimiser optimiser{.rule = rule, .lazy = lazy};
      Array<float> a = start, b = start;
      State<float> state_a = make_state(optimiser, a), state_b = state_a;
      step<float>(optimiser, a, gradient, state_a);
      step<float>({.rule = rule}, b, to_row_sparse(gradient), state_b);
      EXPECT_EQ(a, b);
      EXPECT_EQ(state_a, state_b);
    }
}

}  // namespace
}  // namespace tessera::arrays
