#include "tessera/base/one_caller.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tessera/base/error.hpp"

namespace tessera {
namespace {

TEST(OneCaller, RefusesASecondCallUntilTheFirstEnds) {
  OneCaller caller;
  {
    const auto first = caller.enter("forward");
    try {
      static_cast<void>(caller.enter("grad_w"));
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
      EXPECT_THAT(e.what(), testing::HasSubstr("grad_w: another call of this layer is running"));
    }
    EXPECT_THROW(static_cast<void>(caller.enter("forward")), Error) << "a refusal ends no call";
  }
  EXPECT_NO_THROW(static_cast<void>(caller.enter("forward")));
}

TEST(OneCaller, LetsOneThreadInAtATime) {
  OneCaller caller;
  std::atomic<int> entered = 0, refused = 0;
  int guarded = 0;  // ThreadSanitizer reports two threads that are inside
  const auto call_often = [&] {
    for (int i = 0; i < 2000; ++i) try {
        const auto call = caller.enter("call");
        ++guarded;
        ++entered;
      } catch (const Error&) {
        ++refused;
      }
  };
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) threads.emplace_back(call_often);
  }
  EXPECT_EQ(guarded, entered);
  EXPECT_EQ(entered + refused, 6000);
}

}  // namespace
}  // namespace tessera
