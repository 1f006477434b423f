#include "tessera/train/rewire/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/tests/support/message_of.hpp"

namespace tessera::train {
namespace {

using test::refusal;
using testing::HasSubstr;

TEST(RewireSchedule, HasTheFractionsOfTheCosine) {
  const RewireSchedule schedule{.fraction = 0.3, .end = 3510};
  EXPECT_NEAR(schedule.at(100), 0.299400, 5e-7);
  EXPECT_NEAR(schedule.at(1700), 0.157381, 5e-7);
  EXPECT_NEAR(schedule.at(3400), 0.000726, 5e-7);
}

TEST(RewireSchedule, IsDueAtMultiplesFromBeginToEndAndNowhereElse) {
  const RewireSchedule schedule{.begin = 200, .end = 400, .every = 100};
  for (const std::int64_t step : {0, 1, 99, 100, 199, 201, 299, 301, 399, 401, 500}) {
    EXPECT_FALSE(schedule.is_due(step)) << step;
    EXPECT_EQ(schedule.at(step), 0) << step;
  }
  for (const std::int64_t step : {200, 300, 400}) EXPECT_TRUE(schedule.is_due(step)) << step;
  EXPECT_NEAR(schedule.at(400), 0, 1e-15);
}

TEST(RewireSchedule, FallsOnALineOrNotAtAll) {
  RewireSchedule schedule{.fraction = 0.5, .end = 1000, .decay = FractionDecay::Linear};
  EXPECT_DOUBLE_EQ(schedule.at(100), 0.45);
  EXPECT_DOUBLE_EQ(schedule.at(1000), 0);
  schedule.decay = FractionDecay::Constant;
  EXPECT_DOUBLE_EQ(schedule.at(1000), 0.5);
}

TEST(RewireSchedule, WithoutAnEndNeverRewires) {
  for (const std::int64_t step : {0, 1, 100, 1000000}) EXPECT_FALSE(RewireSchedule{}.is_due(step));
}

TEST(RewireSchedule, IsRefusedOutsideItsRanges) {
  const auto message = [](const RewireSchedule& s) { return refusal([&] { check(s); }); };
  EXPECT_THAT(message({.fraction = -0.1}), HasSubstr("fraction is -0.1; it must be in 0..1"));
  EXPECT_THAT(message({.fraction = 1.1}), HasSubstr("fraction is 1.1"));
  EXPECT_THAT(message({.fraction = std::nan("")}), HasSubstr("fraction is nan"));
  EXPECT_THAT(message({.every = 0}), HasSubstr("every is 0; it must be at least 1"));
  EXPECT_THAT(message({.begin = 0}), HasSubstr("begin is 0"));
  EXPECT_THAT(message({.begin = 200, .end = 100}), HasSubstr("end is 100 and begin 200"));
  EXPECT_THAT(message({.end = -1}), HasSubstr("end is -1"));
  EXPECT_NO_THROW(check(RewireSchedule{.begin = 200, .end = 200}));
}

TEST(BlocksToDrop, IsRoundedDown) {
  EXPECT_EQ(blocks_to_drop(0.3, 10), 3);
  EXPECT_EQ(blocks_to_drop(0.1, 5), 0);
  EXPECT_EQ(blocks_to_drop(1, 10), 10);
  EXPECT_EQ(blocks_to_drop(0.5, 0), 0);
}

}  // namespace
}  // namespace tessera::train
