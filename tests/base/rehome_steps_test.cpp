#include "tessera/base/rehome_steps.hpp"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(RehomeSteps, GatherAndUnpackAndLetBucketsPassOnlyBetweenSeveralTiles) {
  const std::pair exchange(Phase::RehomeValues, StepKind::Exchange);
  const std::pair compute(Phase::RehomeValues, StepKind::Compute);
  EXPECT_EQ(rehome_step_order(false), (StepOrder{exchange, compute}));
  EXPECT_EQ(rehome_step_order(true), (StepOrder{exchange, compute, exchange, compute}));
}

TEST(RehomeSteps, RunTwiceInAllWhenNothingHasSpilled) {
  std::int64_t times = 0;
  for_each_rehome_step(true, [&](const PassStep& step) { times += step.times; });
  EXPECT_EQ(times, 2);
}

}  // namespace
}  // namespace tessera
