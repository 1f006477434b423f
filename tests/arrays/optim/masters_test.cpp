#include "tessera/arrays/optim/masters.hpp"

#include <gtest/gtest.h>

#include "tessera/arrays/row_sparse/cast_storage.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/half.hpp"

namespace tessera::arrays {
namespace {

using train::AdaGrad;
using train::Adam;
using train::Optimiser;
using train::Rule;
using train::Sgd;

Array<Half> ones(std::int64_t rows, std::int64_t cols) {
  return DenseArray<Half>{{rows, cols}, std::vector<Half>(std::size_t(rows * cols), Half(1.0f))};
}

TEST(StepWithMasters, SmallUpdatesAddUpInTheMasters) {
  const Optimiser sgd{.rule = Sgd{.learning_rate = 0.0001}};
  Array<Half> weight = ones(3, 2);
  Array<float> master = make_masters(weight);
  State<float> state = make_state(sgd, master);
  const Array<Half> gradient = RowSparse<Half>{{3, 2}, {1}, {Half(1.0f), Half(2.0f)}};
  for (int i = 0; i < 100; ++i) step_with_masters(sgd, weight, master, gradient, state);
  // One step is less than half a unit of a half near 1, 2^-12.
  const auto& values = std::get<DenseArray<Half>>(weight).values;
  EXPECT_NEAR(float(values[2]), 0.99f, 0.0005f);
  EXPECT_NEAR(float(values[3]), 0.98f, 0.0005f);
  EXPECT_EQ(float(values[0]), 1.0f);
  EXPECT_EQ(float(values[4]), 1.0f);
}

TEST(StepWithMasters, WeightsAreAlwaysTheirRoundedMasters) {
  for (const bool lazy : {true, false})
    for (const Rule& rule : {Rule(Sgd{.momentum = 0.9}), Rule(Adam{}), Rule(AdaGrad{})}) {
      Optimiser optimiser{.rule = rule};
      optimiser.lazy = lazy;
      Array<BFloat16> weight =
          DenseArray<BFloat16>{{4, 2}, std::vector<BFloat16>(8, BFloat16(1.0f))};
      Array<float> master = make_masters(weight), plain = master;
      State<float> state = make_state(optimiser, master), plain_state = state;
      for (const std::vector<std::int64_t>& rows : {std::vector<std::int64_t>{1, 2}, {0, 2}}) {
        const RowSparse<BFloat16> gradient{{4, 2}, rows, std::vector<BFloat16>(4, BFloat16(0.5f))};
        step_with_masters(optimiser, weight, master, Array<BFloat16>(gradient), state);
        step(optimiser, plain, Array<float>(arrays::cast<float>(gradient)), plain_state);
        EXPECT_EQ(master, plain);
        const auto& values = std::get<DenseArray<BFloat16>>(weight).values;
        const auto& masters = std::get<DenseArray<float>>(master).values;
        for (std::size_t i = 0; i < values.size(); ++i)
          EXPECT_EQ(values[i].bits, BFloat16(masters[i]).bits);
      }
    }
}

TEST(StepWithMasters, RefusesMastersOfAnotherLayout) {
  const Optimiser sgd{.rule = Sgd{}};
  Array<Half> weight = ones(3, 2);
  Array<float> master = make_masters(ones(2, 3));
  State<float> state = make_state(sgd, master);
  EXPECT_THROW(step_with_masters(sgd, weight, master, ones(3, 2), state), Error);
}

}  // namespace
}  // namespace tessera::arrays
