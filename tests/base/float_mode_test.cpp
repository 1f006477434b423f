#include "tessera/base/float_mode.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cfenv>
#include <cstdint>
#include <memory>

#include "tessera/base/executor.hpp"
#include "tessera/base/one_caller.hpp"
#include "tessera/tests/support/other_float_mode.hpp"

namespace tessera {
namespace {

using test::OtherFloatMode;

TEST(DefaultFloatMode, IsTheModeUntilItEndsAndThenTheCallersComesBack) {
  const OtherFloatMode other;
  {
    const DefaultFloatMode mode;
    EXPECT_TRUE(OtherFloatMode::is_off());
    {
      const DefaultFloatMode nested;
      EXPECT_TRUE(OtherFloatMode::is_off());
    }
    EXPECT_TRUE(OtherFloatMode::is_off());
  }
  EXPECT_TRUE(OtherFloatMode::is_on());
}

TEST(DefaultFloatMode, LeavesADefaultModeAndItsFlagsAlone) {
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(FE_INEXACT);
  {
    const DefaultFloatMode mode;
    EXPECT_TRUE(OtherFloatMode::is_off());
  }
  EXPECT_NE(std::fetestexcept(FE_INEXACT), 0);
  EXPECT_TRUE(OtherFloatMode::is_off());
}

TEST(DefaultFloatMode, RaisesNoSignalThatTheCallerHasAskedFor) {
#if defined(__SSE__)
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before & ~0x1f80u);  // every exception is a signal
  {
    const DefaultFloatMode mode;
    volatile float zero = 0;
    volatile float infinite = 1 / zero;
    EXPECT_GT(infinite, 0);
  }
  _mm_setcsr(before);
#else
  GTEST_SKIP() << "this processor raises no signal";
#endif
}

class LoopsOf : public testing::TestWithParam<ExecutorKind> {};

TEST_P(LoopsOf, RunInTheDefaultModeOnEveryThreadWhereverThreadsWereStarted) {
  if (!has_executor(GetParam())) GTEST_SKIP() << "this build has no oneTBB";
  for (const bool made_in_other_mode : {false, true}) {
    std::unique_ptr<OtherFloatMode> other;
    if (made_in_other_mode) other = std::make_unique<OtherFloatMode>();
    const auto executor = make_executor(GetParam(), 3);
    if (!made_in_other_mode) other = std::make_unique<OtherFloatMode>();
    std::atomic<int> wrong = 0;
    for (int loop = 0; loop < 20; ++loop)
      for (const std::int64_t count : {1, 2, 100})
        executor->for_each(count, [&](std::int64_t) { wrong += OtherFloatMode::is_off() ? 0 : 1; });
    EXPECT_EQ(wrong, 0) << made_in_other_mode;
    EXPECT_TRUE(OtherFloatMode::is_on());
  }
}

INSTANTIATE_TEST_SUITE_P(EveryKind, LoopsOf,
                         testing::Values(ExecutorKind::Tbb, ExecutorKind::Threads),
                         [](const auto& p) {
                           return p.param == ExecutorKind::Tbb ? "Tbb" : "Threads";
                         });

TEST(OneCaller, RunsACallInTheDefaultMode) {
  const OtherFloatMode other;
  OneCaller caller;
  {
    const auto call = caller.enter("forward");
    EXPECT_TRUE(OtherFloatMode::is_off());
  }
  EXPECT_TRUE(OtherFloatMode::is_on());
}

}  // namespace
}  // namespace tessera
