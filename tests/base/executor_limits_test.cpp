#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <system_error>
#include <thread>

#include "tessera/base/executor.hpp"

#ifdef TESSERA_HAS_TBB
#include <oneapi/tbb/parallel_for.h>
#endif

namespace tessera {
namespace {

using namespace std::chrono_literals;

// Counts the threads that are in the bodies of one loop at the same time. A body waits until the
// wanted number has come, so a loop that has enough threads always reaches it.
class Meeting {
 public:
  explicit Meeting(int wanted) : wanted_(wanted) {}
  void arrive() {
    ++present_;
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (present_ < wanted_ && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(100us);
    most_ = std::max(most_.load(), present_.load());
    if (present_ < wanted_) --present_;
  }
  int most() const { return most_; }

 private:
  int wanted_;
  std::atomic<int> present_ = 0, most_ = 0;
};

// Returns the number of threads, up to two, that meet in a loop.
int meet(Executor& executor) {
  Meeting meeting(2);
  executor.for_each(2, [&](std::int64_t) { meeting.arrive(); });
  return meeting.most();
}

class ExecutorLimits : public testing::TestWithParam<ExecutorKind> {
 protected:
  void SetUp() override {
    if (!has_executor(GetParam())) GTEST_SKIP() << "this build has no oneTBB";
  }
};

TEST_P(ExecutorLimits, OneThreadedExecutorDoesNotLimitOthers) {
  const auto one = make_executor(GetParam(), 1);
  const auto two = make_executor(GetParam(), 2);
  if (two->threads() < 2) GTEST_SKIP() << "this machine has one core";
  one->for_each(3, [](std::int64_t) {});
  EXPECT_EQ(meet(*two), 2);
  const auto late = make_executor(GetParam(), 1);
  EXPECT_EQ(meet(*two), 2);
}

TEST_P(ExecutorLimits, OneThreadedExecutorUsesTheCallersThreadOnly) {
  const auto two = make_executor(GetParam(), 2);
  const auto one = make_executor(GetParam(), 1);
  const auto caller = std::this_thread::get_id();
  std::atomic<int> elsewhere = 0;
  one->for_each(1000, [&](std::int64_t) { elsewhere += std::this_thread::get_id() != caller; });
  EXPECT_EQ(elsewhere, 0);
}

#ifdef TESSERA_HAS_TBB
TEST(TbbExecutor, DoesNotLimitLoopsThatTheCallerRunsWithTbb) {
  if (make_executor(ExecutorKind::Tbb, 2)->threads() < 2)
    GTEST_SKIP() << "this machine has one core";
  const auto one = make_executor(ExecutorKind::Tbb, 1);
  one->for_each(3, [](std::int64_t) {});
  Meeting meeting(2);
  oneapi::tbb::parallel_for(0, 2, [&](int) { meeting.arrive(); });
  EXPECT_EQ(meeting.most(), 2);
}
#endif

// While it lives, the system starts no thread with the default attributes, because the stack of
// one is larger than the address space.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 52);
    failed_ = pthread_setattr_default_np(&huge) != 0;
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
  bool failed() const { return failed_; }

 private:
  pthread_attr_t before_;
  bool failed_ = false;
};

TEST_P(ExecutorLimits, FallsBackToTheCallersThreadIfNoOtherStarts) {
  std::unique_ptr<Executor> executor;
  {
    const NoThreads none;
    ASSERT_FALSE(none.failed());
    ASSERT_THROW(std::thread([] {}).join(), std::system_error);
    executor = make_executor(GetParam(), 2);
  }
  EXPECT_EQ(executor->threads(), 1);
  std::atomic<std::int64_t> sum = 0;
  executor->for_each(100, [&](std::int64_t i) { sum += i; });
  EXPECT_EQ(sum, 4950);
}

INSTANTIATE_TEST_SUITE_P(EveryKind, ExecutorLimits,
                         testing::Values(ExecutorKind::Tbb, ExecutorKind::Threads),
                         [](const auto& p) {
                           return p.param == ExecutorKind::Tbb ? "Tbb" : "Threads";
                         });

}  // namespace
}  // namespace tessera
