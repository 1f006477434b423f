// Children of fork(), while other threads of the parent hold locks and run loops.

#include "tessera/base/process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tessera/base/executor.hpp"
#include "tessera/base/one_caller.hpp"
#include "tessera/tests/support/forked.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera {
namespace {

// A thread that does `work` again and again while the object lives; `work` has begun.
class Busy {
 public:
  template <class Work>
  explicit Busy(const Work& work)
      : thread_([this, work](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            work();
            begun_ = true;
          }
        }) {
    while (!begun_) std::this_thread::yield();
  }

 private:
  std::atomic<bool> begun_ = false;
  std::jthread thread_;
};

// Runs a loop and returns true if every index ran once.
bool adds_up(Executor& executor) {
  std::atomic<std::int64_t> sum = 0;
  executor.for_each(1000, [&](std::int64_t i) { sum += i; });
  return sum == 499500;
}

TEST(ProcessNumber, IsOneMoreInAChild) {
  const std::uint32_t own = process_number();
  EXPECT_EQ(test::in_child([&] { return process_number() == own + 1; }), 0);
  EXPECT_EQ(process_number(), own);
}

TEST(OfProcess, KeepsItsObjectInOneProcess) {
  OfProcess<int> number;
  number.get() = 3;
  EXPECT_EQ(number.get([] { return std::make_unique<int>(4); }), 3);
}

TEST(OfProcess, GivesAChildALockOfItsOwn) {
  OfProcess<std::mutex> mutex;
  const std::lock_guard held(mutex.get());  // nobody can unlock the child's copy of it
  EXPECT_EQ(test::in_child([&] { return mutex.get().try_lock(); }), 0);
  EXPECT_FALSE(mutex.get().try_lock());
}

TEST(OfProcess, IsMadeOnceByThreadsThatComeTogether) {
  for (int trial = 0; trial < 50; ++trial) {
    OfProcess<int> number;
    std::atomic<int*> first = nullptr;
    std::atomic<int> others = 0;
    const auto ask = [&] {
      int* const own = &number.get();
      int* none = nullptr;
      if (!first.compare_exchange_strong(none, own) && none != own) ++others;
    };
    {
      std::jthread beside(ask);
      ask();
    }
    EXPECT_EQ(others, 0);
  }
}

class ForkedExecutor : public testing::TestWithParam<ExecutorKind> {
 protected:
  void SetUp() override {
    if (!has_executor(GetParam())) GTEST_SKIP() << "this build has no oneTBB";
  }
};

TEST_P(ForkedExecutor, RunsLoopsInTheChildWhileTheParentComputes) {
  if (!test::kChildrenMayStartThreads) GTEST_SKIP() << "children of fork() are not followed";
  const auto idle = make_executor(GetParam(), 3), busy = make_executor(GetParam(), 3);
  const Busy loops([&] { busy->for_each(100, [](std::int64_t) {}); });
  for (int trial = 0; trial < 5; ++trial)
    EXPECT_EQ(test::in_child([&] {
                return adds_up(*idle) && adds_up(*busy) && adds_up(*busy) &&
                       adds_up(*make_executor(GetParam(), 2)) && adds_up(*make_executor());
              }),
              0)
        << trial;
}

TEST_P(ForkedExecutor, EndsInTheChildWithoutThreadsThatItDoesNotHave) {
  if (!test::kChildrenMayStartThreads) GTEST_SKIP() << "children of fork() are not followed";
  auto executor = make_executor(GetParam(), 3);
  EXPECT_TRUE(adds_up(*executor));
  EXPECT_EQ(test::in_child([&] {
              executor.reset();
              return true;
            }),
            0);
}

TEST_P(ForkedExecutor, HasAsManyThreadsInTheChild) {
  const auto executor = make_executor(GetParam(), 2);
  EXPECT_EQ(
      test::in_child([&, threads = executor->threads()] { return executor->threads() == threads; }),
      0);
}

INSTANTIATE_TEST_SUITE_P(EveryKind, ForkedExecutor,
                         testing::Values(ExecutorKind::Tbb, ExecutorKind::Threads),
                         [](const auto& p) {
                           return p.param == ExecutorKind::Tbb ? "Tbb" : "Threads";
                         });

TEST(ForkedOneCaller, LetsTheChildBeginAnInterruptedPassAgain) {
  if (!test::kChildrenMayStartThreads) GTEST_SKIP() << "children of fork() are not followed";
  OneCaller caller;
  const auto running = caller.enter_pass("forward");
  EXPECT_EQ(test::in_child([&] {
              {
                const auto again = caller.enter_pass("forward");
                test::refusal([&] { static_cast<void>(caller.enter_pass("forward")); });
              }
              static_cast<void>(caller.enter("set_weights"));
              return !testing::Test::HasFailure();
            }),
            0);
}

TEST(ForkedOneCaller, RefusesAnObjectThatWasBeingChanged) {
  if (!test::kChildrenMayStartThreads) GTEST_SKIP() << "children of fork() are not followed";
  OneCaller caller;
  const auto running = caller.enter("set_weights");
  EXPECT_EQ(test::in_child([&] {
              for (int call = 0; call < 2; ++call) {
                const std::string text =
                    test::refusal([&] { static_cast<void>(caller.enter_pass("forward")); });
                EXPECT_THAT(text, testing::HasSubstr("forward: another thread was changing"));
              }
              test::refusal([&] { caller.refuse_if_interrupted("spmm"); });
              return !testing::Test::HasFailure();
            }),
            0);
}

}  // namespace
}  // namespace tessera
