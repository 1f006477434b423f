#include "tessera/train/optim/encoded.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/arrays/optim/step.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/sparse/drawing.hpp"

namespace tessera::train {
namespace {

using arrays::make_state;
using arrays::State;
using arrays::step;
using partitioner::Buckets;
using partitioner::from_bucket_order;
using partitioner::to_bucket_order;
using test::raises;

constexpr std::uint64_t kSeed = 8;

partitioner::TileGrid grid_of(const sparse::Csr<float>& matrix) {
  partitioner::TileGrid grid;
  grid.size = {1, matrix.rows, matrix.cols, 4};
  grid.block = matrix.block;
  grid.splits = {1, 3, 2, 2};
  grid.meta_words = 1000;
  grid.blocks = matrix.blocks() / 8;
  grid.z_grain = 2;
  return grid;
}

// Some buckets spill, and the others have padding.
Buckets encoded(const sparse::Csr<float>& matrix) {
  auto result = partitioner::encode(matrix, grid_of(matrix), {.force_spills = true});
  EXPECT_TRUE(result.buckets) << result.misfit->message;
  return std::move(*result.buckets);
}

template <class W>
std::vector<W> random_values(std::size_t count, Random& random) {
  std::vector<W> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(W(float(2 * random.unit() - 1)));
  return values;
}

const std::vector<Optimiser>& optimisers() {
  static const std::vector<Optimiser> all = {
      {.rule = Sgd{}},
      {.rule = Sgd{}, .rescale = .3, .clip = .2, .weight_decay = .1, .lazy = false},
      {.rule = Sgd{.momentum = .9}, .weight_decay = .05},
      {.rule = Adam{}, .clip = .5, .weight_decay = .01},
      {.rule = AdaGrad{}, .rescale = 2}};
  return all;
}

// The decoded counterpart holds the values of the matrix row by row.
template <class T>
void expect_decoded_bits(const sparse::Csr<float>& matrix, int threads) {
  const Buckets buckets = encoded(matrix);
  const auto executor = make_executor(threads);
  for (const Optimiser& optimiser : optimisers()) {
    Random random(kSeed);
    arrays::DenseArray<T> plain{{std::ssize(matrix.values)},
                                random_values<T>(matrix.values.size(), random)};
    arrays::Array<T> weight = plain;
    State<T> state = make_state(optimiser, weight);
    std::vector<T> values = to_bucket_order<T, T>(buckets, plain.values);
    EncodedState<T> bucket_state = make_encoded_state<T>(optimiser, buckets);
    for (int t = 0; t < 3; ++t) {
      const arrays::DenseArray<T> gradient{plain.shape,
                                           random_values<T>(matrix.values.size(), random)};
      step<T>(optimiser, weight, gradient, state);
      const std::vector<T> in_buckets = to_bucket_order<T, T>(buckets, gradient.values);
      step<T, T>(optimiser, buckets, values, in_buckets, bucket_state, *executor);
    }
    const std::vector<T>& decoded = std::get<arrays::DenseArray<T>>(weight).values;
    EXPECT_NE(decoded, plain.values);
    EXPECT_EQ((from_bucket_order<T, T>(buckets, values)), decoded) << name_of(optimiser);
    for (std::size_t i = 0; i < state.arrays.size(); ++i)
      EXPECT_EQ((from_bucket_order<T, T>(buckets, bucket_state.arrays[i])),
                std::get<arrays::DenseArray<T>>(state.arrays[i]).values);
  }
}

TEST(EncodedStep, HasTheBitsOfTheDecodedUpdate) {
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}, {2, 3}})
    for (const int threads : {1, 3}) {
      const auto matrix = sparse::random_pattern(48, 48, block, 0.3, kSeed);
      expect_decoded_bits<float>(matrix, threads);
      expect_decoded_bits<double>(matrix, threads);
    }
}

TEST(EncodedStep, HasTheBitsOfACsrStepToo) {
  const sparse::Csr<float> matrix = sparse::random_pattern(48, 48, {1, 1}, 0.3, kSeed);
  const Buckets buckets = encoded(matrix);
  const auto executor = make_executor(2);
  const Optimiser adam{.rule = Adam{}, .weight_decay = .1};
  sparse::Csr<float> gradient = sparse::random_pattern(48, 48, {1, 1}, 0.3, kSeed);
  sparse::fill_signs(gradient, /*seed=*/3);
  arrays::Array<float> weight = matrix;
  State<float> state = make_state(adam, weight);
  step<float>(adam, weight, gradient, state);
  auto values = to_bucket_order<float, float>(buckets, matrix.values);
  auto bucket_state = make_encoded_state<float>(adam, buckets);
  const auto gradients = to_bucket_order<float, float>(buckets, gradient.values);
  step<float, float>(adam, buckets, values, gradients, bucket_state, *executor);
  EXPECT_EQ(arrays::Array<float>(partitioner::decode<float>(buckets, values)), weight);
}

// The step computes in float and rounds once at its end.
TEST(EncodedStep, RoundsHalfOncePerStep) {
  const auto matrix = sparse::random_pattern(48, 48, {4, 4}, 0.3, kSeed);
  const Buckets buckets = encoded(matrix);
  const auto executor = make_executor(2);
  const Optimiser sgd{.rule = Sgd{.learning_rate = .1}, .weight_decay = .25};
  Random random(kSeed);
  const auto start = random_values<Half>(matrix.values.size(), random);
  const auto pull = random_values<Half>(matrix.values.size(), random);
  auto values = to_bucket_order<Half, Half>(buckets, start);
  auto state = make_encoded_state<float>(sgd, buckets);
  step<Half, float>(sgd, buckets, values, to_bucket_order<Half, Half>(buckets, pull), state,
                    *executor);
  const auto got = from_bucket_order<Half, Half>(buckets, values);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float w = float(start[i]);
    EXPECT_EQ(got[i].bits, Half(w - .1f * (float(pull[i]) + .25f * w)).bits) << i;
  }
}

// Padding is not a weight, so even values that would give NaN leave it unchanged.
TEST(EncodedStep, LeavesPaddingAlone) {
  const auto matrix = sparse::random_pattern(48, 48, {1, 1}, 0.3, kSeed);
  const Buckets buckets = encoded(matrix);
  const auto executor = make_executor(1);
  const Optimiser adam{.rule = Adam{}};
  auto state = make_encoded_state<float>(adam, buckets);
  std::vector<float> values(buckets.source.size(), 7);
  const std::vector<float> gradients(buckets.source.size(), 1);
  step<float, float>(adam, buckets, values, gradients, state, *executor);
  std::int64_t padding = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i] == 7, buckets.source[i] < 0) << i;
    padding += buckets.source[i] < 0;
  }
  EXPECT_GT(padding, 0);
}

TEST(EncodedStep, RefusesListsOfAnotherLengthAndChangesNothing) {
  const auto matrix = sparse::random_pattern(48, 48, {1, 1}, 0.3, kSeed);
  const Buckets buckets = encoded(matrix);
  const auto executor = make_executor(1);
  const Optimiser adam{.rule = Adam{}}, sgd{.rule = Sgd{}};
  std::vector<float> values = to_bucket_order<float, float>(buckets, matrix.values);
  const std::vector<float> before = values, gradients = values;
  auto state = make_encoded_state<float>(adam, buckets),
       none = make_encoded_state<float>(sgd, buckets);
  const std::span<float> all = values;
  const std::span<const float> given = gradients;
  const auto refused = [&](std::span<float> v, std::span<const float> g, auto& s,
                           const std::string& text) {
    EXPECT_TRUE(raises(ErrorCode::InvalidArgument, {text},
                       [&, v, g] { step<float, float>(adam, buckets, v, g, s, *executor); }));
  };
  refused(all.first(all.size() - 1), given, state, "values");
  refused(all, given.first(1), state, "1 gradients");
  refused(all, given, none, "0 arrays of state; they hold 2");
  state.arrays[1].pop_back();
  refused(all, given, state, "numbers in a state");
  EXPECT_EQ(values, before);
  EXPECT_EQ(state.steps, 0);
}

}  // namespace
}  // namespace tessera::train
