#include "tessera/codelets/cost/network_cycles.hpp"

#include <gtest/gtest.h>

namespace tessera::codelets {
namespace {

constexpr DataType kHalf = DataType::Half, kFloat = DataType::Float;

// 1200 floats are 600 vectors, 100 for each of 6 workers.
TEST(NetworkCycles, CountInstructionsOfTheBusiestWorker) {
  EXPECT_EQ(activate_cycles(1200, 12, {}, kFloat, 6), Cycles(6 * (15 + 3 * 2 + 100 * 3)));
  EXPECT_EQ(activate_cycles(1200, 12, {Activation::Relu}, kFloat, 6),
            Cycles(6 * (15 + 3 * 2 + 100 * 5)));
  EXPECT_EQ(activate_cycles(1200, 12, {Activation::Gelu}, kFloat, 6),
            Cycles(6 * (15 + 3 * 2 + 100 * (11 + 2))));
  EXPECT_EQ(derivative_cycles(1200, {Activation::Relu}, kFloat, 6), Cycles(6 * (15 + 100 * 7)));
  EXPECT_EQ(sum_rows_cycles(1200, 12, kFloat, 6), Cycles(6 * (15 + 3 * 2 + 100 * 2)));
  EXPECT_EQ(loss_cycles({10, 120, 120}, Loss::SoftmaxCrossEntropy, kFloat, 6),
            Cycles(6 * (15 + 3 * 20 + 100 * (10 + 4))));
  EXPECT_EQ(loss_cycles({10, 120, 120}, Loss::MeanSquaredError, kFloat, 6),
            Cycles(6 * (15 + 100 * 6)));
  EXPECT_EQ(update_cycles(1200, {}, kFloat, 6), Cycles(6 * (15 + 100 * 4)));
  EXPECT_EQ(update_cycles(1200, {Adam{}}, kFloat, 6), Cycles(6 * (15 + 100 * (13 + 4))));
}

TEST(NetworkCycles, GrowWithTheWorkAndCostNothingWithoutAny) {
  EXPECT_EQ(activate_cycles(0, 0, {Activation::Gelu}, kHalf, 6), Cycles(0));
  EXPECT_EQ(derivative_cycles(100, {}, kHalf, 6), Cycles(0));
  EXPECT_EQ(update_cycles(0, {Adam{}}, kHalf, 6), Cycles(0));
  for (const Rule& rule : {Rule(Sgd{}), Rule(Sgd{0.1, 0.9}), Rule(AdaGrad{}), Rule(Adam{}),
                           Rule(Nesterov{}), Rule(TorchSgd{}), Rule(AdamW{})}) {
    EXPECT_LT(update_cycles(100, {rule}, kFloat, 6), update_cycles(1000, {rule}, kFloat, 6));
    EXPECT_LT(update_cycles(1000, {rule}, kFloat, 6), update_cycles(1000, {rule}, kHalf, 6));
    EXPECT_EQ(update_cycles(1200, {.rule = rule, .rescale = 2, .clip = 1, .weight_decay = 0.1},
                            kFloat, 6),
              update_cycles(1200, {rule}, kFloat, 6) + Cycles(6 * 100 * 4));
  }
}

}  // namespace
}  // namespace tessera::codelets
