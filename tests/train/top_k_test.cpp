// The method that keeps the k largest weights of a step, beside a dense computation of the same
// rule.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/train/optim/values.hpp"
#include "tessera/train/rewire/carry.hpp"
#include "tessera/train/rewire/method.hpp"

namespace tessera::train {
namespace {

using sparse::BlockAt;
using sparse::Csr;
using test::refusal;
using testing::HasSubstr;

constexpr std::int64_t kOutputRows = 24, kInputCols = 40, kStepBatch = 6;

Matrix<float> whole_numbers(std::int64_t rows, std::int64_t cols, Random& random) {
  Matrix<float> m(rows, cols);
  for (float& v : m.elements()) v = float(random.below(7) - 3);
  return m;
}

// The dense gradient of a batch, whose sums are whole numbers and therefore exact.
std::vector<float> dense_gradient(const Matrix<float>& q, const Matrix<float>& s) {
  std::vector<float> gradient(std::size_t(q.rows() * s.rows()));
  for (std::int64_t r = 0; r < q.rows(); ++r)
    for (std::int64_t c = 0; c < s.rows(); ++c)
      for (std::int64_t z = 0; z < q.cols(); ++z)
        gradient[std::size_t(r * s.rows() + c)] += q(r, z) * s(c, z);
  return gradient;
}

// All places of a matrix in dense arrays, with the flags of those that are stored.
struct Dense {
  std::vector<char> stored = std::vector<char>(std::size_t(kOutputRows * kInputCols));
  std::vector<float> values = std::vector<float>(stored.size());
  ValueState<float> state;

  void take_step(const Optimiser& optimiser, const std::vector<float>& gradient) {
    const auto executor = make_executor(1);
    step<float>(optimiser, values, gradient, state, *executor);
    for (std::size_t i = 0; i < stored.size(); ++i)
      if (stored[i] == 0) forget(i);
  }

  void forget(std::size_t i) {
    values[i] = 0;
    stored[i] = 0;
    for (auto& array : state.arrays) array[i] = 0;
  }

  // Returns flags of the places that are the `least` largest stored ones of their row or column.
  std::vector<char> protected_places(std::int64_t least) const {
    std::vector<char> kept(stored.size());
    const auto keep = [&](std::vector<std::size_t> line) {
      std::erase_if(line, [&](std::size_t i) { return stored[i] == 0; });
      std::sort(line.begin(), line.end(), [&](std::size_t a, std::size_t b) {
        return std::tuple(std::abs(values[a]), a) > std::tuple(std::abs(values[b]), b);
      });
      for (std::size_t i = 0; i < std::min(line.size(), std::size_t(least)); ++i) kept[line[i]] = 1;
    };
    for (std::int64_t r = 0; r < kOutputRows; ++r) {
      std::vector<std::size_t> line;
      for (std::int64_t c = 0; c < kInputCols; ++c) line.push_back(std::size_t(r * kInputCols + c));
      keep(line);
    }
    for (std::int64_t c = 0; c < kInputCols; ++c) {
      std::vector<std::size_t> line;
      for (std::int64_t r = 0; r < kOutputRows; ++r)
        line.push_back(std::size_t(r * kInputCols + c));
      keep(line);
    }
    return kept;
  }

  // Gives all other places their first step, and keeps the k largest weights of all.
  void keep_largest(const Optimiser& optimiser, const std::vector<float>& gradient, std::int64_t k,
                    std::int64_t least) {
    std::vector<float> first(gradient.size());
    const ValueState<float> begun =
        first_step<float>(optimiser, state.steps, std::span(gradient), first);
    const std::vector<char> kept = protected_places(least);
    std::vector<std::size_t> held, others, entrants;
    for (std::size_t i = 0; i < gradient.size(); ++i)
      (kept[i] != 0 ? held : stored[i] != 0 ? others : entrants).push_back(i);
    std::sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) {
      return std::tuple(std::abs(values[a]), a) > std::tuple(std::abs(values[b]), b);
    });
    std::stable_sort(entrants.begin(), entrants.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(gradient[a]) > std::abs(gradient[b]);
    });
    // Both lists descend; the larger of their heads is kept until there are k.
    std::size_t other = 0, entrant = 0;
    while (std::int64_t(held.size() + other + entrant) < k) {
      const bool enters = other == others.size() ||
                          (entrant < entrants.size() &&
                           std::abs(first[entrants[entrant]]) > std::abs(values[others[other]]));
      enters ? ++entrant : ++other;
    }
    for (std::size_t at = other; at < others.size(); ++at) forget(others[at]);
    for (std::size_t at = 0; at < entrant; ++at) {
      const std::size_t i = entrants[at];
      stored[i] = 1;
      values[i] = first[i];
      for (std::size_t n = 0; n < begun.arrays.size(); ++n) state.arrays[n][i] = begun.arrays[n][i];
    }
  }
};

struct Sparse {
  Csr<float> weights;
  ValueState<float> state;

  std::vector<float> at_places(const std::vector<float>& dense) const {
    std::vector<float> numbers;
    for (std::int64_t r = 0; r < weights.rows; ++r)
      for (auto i = weights.row_begin[std::size_t(r)]; i < weights.row_begin[std::size_t(r) + 1];
           ++i)
        numbers.push_back(dense[std::size_t(r * weights.cols + weights.col[std::size_t(i)])]);
    return numbers;
  }

  void take(const Rewired& rewired) {
    const std::vector<sparse::PlacedBlock> change = sparse::place_change(weights, rewired.change);
    state = carried_state(weights, change, state);
    weights = sparse::with_change(weights, rewired.change);
    std::size_t next = 0;
    for (const sparse::PlacedBlock& block : change) {
      if (!block.is_added()) continue;
      weights.values[std::size_t(block.after)] = rewired.values[next];
      for (std::size_t n = 0; n < state.arrays.size(); ++n)
        state.arrays[n][std::size_t(block.after)] = rewired.states[n][next];
      ++next;
    }
  }
};

std::pair<Sparse, Dense> first_weights_of(const Optimiser& optimiser, double density) {
  Sparse sparse{sparse::random_pattern(kOutputRows, kInputCols, {}, density, 5), {}};
  Random random(3);
  for (float& v : sparse.weights.values) v = float(random.unit() - 0.5) / 4;
  sparse.state = make_value_state<float>(optimiser, sparse.weights.blocks());
  Dense dense;
  dense.state = make_value_state<float>(optimiser, kOutputRows * kInputCols);
  for (std::int64_t r = 0; r < kOutputRows; ++r)
    for (auto i = sparse.weights.row_begin[std::size_t(r)];
         i < sparse.weights.row_begin[std::size_t(r) + 1]; ++i) {
      const auto place = std::size_t(r * kInputCols + sparse.weights.col[std::size_t(i)]);
      dense.stored[place] = 1;
      dense.values[place] = sparse.weights.values[std::size_t(i)];
    }
  return {sparse, dense};
}

// Compares a run of some steps, every `every`-th of which rewires to `blocks_at(step)` weights.
template <class BlocksAt>
void expect_the_dense_rule(const Optimiser& optimiser, std::int64_t every, std::int64_t least,
                           BlocksAt&& blocks_at) {
  auto [sparse, dense] =
      first_weights_of(optimiser, double(blocks_at(0)) / (kOutputRows * kInputCols));
  const auto executor = make_executor(2);
  Random random(11);
  std::int64_t entered = 0;
  for (std::int64_t number = 1; number <= 24; ++number) {
    SCOPED_TRACE(testing::Message() << name_of(optimiser) << ", step " << number);
    const Matrix<float> q = whole_numbers(kOutputRows, kStepBatch, random),
                        s = whole_numbers(kInputCols, kStepBatch, random);
    const std::vector<float> gradient = dense_gradient(q, s);
    const std::vector<float> own = sparse.at_places(gradient);
    step<float>(optimiser, sparse.weights.values, own, sparse.state, *executor);
    dense.take_step(optimiser, gradient);
    if (number % every == 0) {
      const GradientBatch batch{q.view(), s.view()};
      const Rewired rewired = rewire(TopK{}, {.weights = sparse.weights,
                                              .batches = {&batch, 1},
                                              .executor = *executor,
                                              .blocks = blocks_at(number),
                                              .min_per_neuron = least,
                                              .optimiser = &optimiser,
                                              .optimiser_steps = sparse.state.steps});
      entered += std::ssize(rewired.change.added);
      sparse.take(rewired);
      dense.keep_largest(optimiser, gradient, blocks_at(number), least);
    }
    std::vector<char> stored(dense.stored.size());
    for (std::int64_t r = 0; r < kOutputRows; ++r)
      for (auto i = sparse.weights.row_begin[std::size_t(r)];
           i < sparse.weights.row_begin[std::size_t(r) + 1]; ++i)
        stored[std::size_t(r * kInputCols + sparse.weights.col[std::size_t(i)])] = 1;
    ASSERT_EQ(stored, dense.stored);
    ASSERT_EQ(sparse.weights.values, sparse.at_places(dense.values));
    for (std::size_t n = 0; n < sparse.state.arrays.size(); ++n)
      ASSERT_EQ(sparse.state.arrays[n], sparse.at_places(dense.state.arrays[n]));
  }
  EXPECT_GT(entered, 24 / every) << "says something";
}

const std::vector<Optimiser>& optimisers() {
  static const std::vector<Optimiser> all = {{.rule = Adam{.learning_rate = 0.02}},
                                             {.rule = AdamW{.learning_rate = 0.02}},
                                             {.rule = TorchSgd{.learning_rate = 0.002}},
                                             {.rule = Sgd{.learning_rate = 0.004}},
                                             {.rule = AdaGrad{.learning_rate = 0.03}}};
  return all;
}

TEST(TopK, KeepsWhatTheDenseRuleKeepsStepByStep) {
  for (const Optimiser& optimiser : optimisers())
    for (const std::int64_t every : {1, 3})
      expect_the_dense_rule(optimiser, every, 0, [](std::int64_t) { return 96; });
}

TEST(TopK, FollowsAScheduleOfDensitiesAsTheDenseRuleDoes) {
  const Optimiser optimiser{.rule = Adam{.learning_rate = 0.02}};
  expect_the_dense_rule(optimiser, 2, 0, [](std::int64_t step) { return 400 - 14 * step; });
  expect_the_dense_rule(optimiser, 2, 0, [](std::int64_t step) { return 60 + 14 * step; });
}

TEST(TopK, KeepsTheLargestOfEachRowAndColumnAsTheDenseRuleDoes) {
  const Optimiser optimiser{.rule = Adam{.learning_rate = 0.02}};
  for (const std::int64_t least : {1, 2})
    expect_the_dense_rule(optimiser, 1, least, [](std::int64_t) { return 110; });
}

TEST(TopK, WithAdamLetsAPlaceEnterByTheLearningRate) {
  for (const std::int64_t steps : {1, 2, 1000}) {
    const Optimiser optimiser{.rule = Adam{.learning_rate = 0.01}};
    const std::vector<float> gradients = {3, -0.5f, 1e-3f};
    std::vector<float> values(3);
    ValueState<float> state = first_step<float>(optimiser, steps, gradients, values);
    EXPECT_EQ(state.steps, steps);
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(values[i], gradients[i] > 0 ? -0.01f : 0.01f, 1e-5f);
    // The same gradient again: both corrected moments stay, and so does the step.
    std::vector<float> before = values;
    const auto executor = make_executor(1);
    step<float>(optimiser, values, gradients, state, *executor);
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(values[i] - before[i], before[i], 2e-5f);
  }
}

TEST(TopK, RefusesBlocksAndCallsWithoutAnOptimiser) {
  const auto executor = make_executor(1);
  const Csr<float> blocks = sparse::random_pattern(8, 8, {2, 2}, 0.5, 1);
  const Csr<float> elements = sparse::random_pattern(8, 8, {}, 0.5, 1);
  EXPECT_THAT(refusal([&] { rewire(TopK{}, {.weights = blocks, .executor = *executor}); }),
              HasSubstr("store elements, or choose rigl"));
  EXPECT_THAT(refusal([&] { rewire(TopK{}, {.weights = elements, .executor = *executor}); }),
              HasSubstr("top-k needs the optimiser"));
  EXPECT_THAT(refusal([&] { check(Method(TopK{.factor = -1})); }), HasSubstr("factor is -1"));
  std::vector<float> values(1);
  EXPECT_THAT(refusal([&] { first_step<float>({}, 0, std::vector<float>(1), values); }),
              HasSubstr("counts 0 steps"));
}

}  // namespace
}  // namespace tessera::train
