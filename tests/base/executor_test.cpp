#include "tessera/base/executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tessera/base/error.hpp"

namespace tessera {
namespace {

struct Setup {
  ExecutorKind kind;
  int threads;
  std::string name() const {
    return (kind == ExecutorKind::Tbb ? "Tbb" : "Threads") + std::to_string(threads);
  }
};
std::ostream& operator<<(std::ostream& out, const Setup& s) { return out << s.name(); }

class EachExecutor : public testing::TestWithParam<Setup> {
 protected:
  void SetUp() override {
    if (!has_executor(GetParam().kind)) GTEST_SKIP() << "this build has no oneTBB";
    executor_ = make_executor(GetParam().kind, GetParam().threads);
  }
  // Returns the number of runs of each index of a loop.
  std::vector<int> runs(std::int64_t count) {
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
    executor_->for_each(count, [&](std::int64_t i) { ++seen[static_cast<std::size_t>(i)]; });
    return {seen.begin(), seen.end()};
  }
  // The text of the exception a loop of `count` ends with when every index of `failing` throws.
  std::string failure(std::int64_t count, const std::vector<std::int64_t>& failing) {
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
    std::string text = "none";
    try {
      executor_->for_each(count, [&](std::int64_t i) {
        ++seen[static_cast<std::size_t>(i)];
        for (const std::int64_t f : failing)
          if (f == i) throw std::runtime_error("index " + std::to_string(i));
      });
    } catch (const std::runtime_error& e) {
      text = e.what();
    }
    for (const auto& n : seen) EXPECT_EQ(n, 1) << "a failure must not stop other indices";
    return text;
  }

  std::unique_ptr<Executor> executor_;
};

TEST_P(EachExecutor, HasTheThreadsItWasAskedForButWithTbbAtMostOnePerCore) {
  const int cores = std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
  const bool tbb = GetParam().kind == ExecutorKind::Tbb;
  EXPECT_EQ(executor_->threads(), tbb ? std::min(GetParam().threads, cores) : GetParam().threads);
}

TEST_P(EachExecutor, RunsEveryIndexExactlyOnce) {
  for (const std::int64_t count : {1, 2, 3, 6, 7, 8, 27, 28, 29, 1000, 1013}) {
    SCOPED_TRACE(count);
    EXPECT_EQ(runs(count), std::vector<int>(static_cast<std::size_t>(count), 1));
  }
}

TEST_P(EachExecutor, RunsNothingForCountZero) {
  bool called = false;
  executor_->for_each(0, [&](std::int64_t) { called = true; });
  EXPECT_FALSE(called);
}

TEST_P(EachExecutor, ThrowsTheExceptionOfTheLowestIndex) {
  EXPECT_EQ(failure(100, {37}), "index 37");
  EXPECT_EQ(failure(100, {99, 3, 50}), "index 3");
  EXPECT_EQ(failure(100, {0, 99}), "index 0");
  EXPECT_EQ(failure(1, {0}), "index 0");
  EXPECT_EQ(failure(100, {}), "none");
}

TEST_P(EachExecutor, ForgetsAFailureAndWorksOn) {
  EXPECT_EQ(failure(10, {9}), "index 9");
  EXPECT_EQ(runs(100), std::vector<int>(100, 1));
  EXPECT_EQ(failure(10, {5}), "index 5");
}

TEST_P(EachExecutor, KeepsTheTypeOfTheException) {
  const auto fail = [](std::int64_t) { throw Error(ErrorCode::NoSolution, "text"); };
  try {
    executor_->for_each(5, fail);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::NoSolution);
  }
}

TEST_P(EachExecutor, ShowsTheCallerWhatBodiesWroteInManyShortLoops) {
  std::vector<std::int64_t> values(13, 0);
  for (int loop = 0; loop < 300; ++loop)
    executor_->for_each(13, [&](std::int64_t i) { values[static_cast<std::size_t>(i)] += i; });
  for (std::int64_t i = 0; i < 13; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], 300 * i);
}

TEST_P(EachExecutor, CallsABodyThatKeepsState) {
  struct Body {
    explicit Body(std::size_t n) : written(n) {}
    Body(const Body&) = delete;  // the loop must not copy it
    Body& operator=(const Body&) = delete;
    void operator()(std::int64_t i) { written[static_cast<std::size_t>(i)] = i + 1; }
    std::vector<std::int64_t> written;
  } body(20);
  executor_->for_each(20, body);
  for (std::int64_t i = 0; i < 20; ++i) EXPECT_EQ(body.written[static_cast<std::size_t>(i)], i + 1);
}

TEST_P(EachExecutor, WorksBesideAnotherExecutor) {
  std::atomic<std::int64_t> sum{0};
  const auto add_all = [&](Executor& executor) {
    for (int loop = 0; loop < 20; ++loop) executor.for_each(100, [&](std::int64_t i) { sum += i; });
  };
  const auto other = make_executor(GetParam().kind, GetParam().threads);
  {
    std::jthread beside([&] { add_all(*other); });
    add_all(*executor_);
  }
  EXPECT_EQ(sum, 2 * 20 * 4950);
}

std::vector<Setup> setups() {
  std::vector<Setup> all;
  for (const ExecutorKind kind : {ExecutorKind::Tbb, ExecutorKind::Threads})
    for (const int threads : {1, 2, 3, 7}) all.push_back({kind, threads});
  return all;
}
INSTANTIATE_TEST_SUITE_P(EveryKind, EachExecutor, testing::ValuesIn(setups()),
                         [](const auto& p) { return p.param.name(); });

TEST(MakeExecutor, RefusesThreadsOutsideOfItsRangeAndNamesTheRange) {
  for (const int threads : {-1, -100, 1025, 1000000, std::numeric_limits<int>::max()})
    for (const auto& make : {+[](int n) { return make_executor(ExecutorKind::Threads, n); },
                             +[](int n) { return make_executor(n); }}) {
      try {
        make(threads);
        ADD_FAILURE() << threads;
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
        EXPECT_THAT(e.what(), testing::HasSubstr(std::to_string(threads)));
        EXPECT_THAT(e.what(), testing::HasSubstr("1 to 1024"));
      }
    }
}

TEST(MakeExecutor, HasAtMost1024Threads) {
#ifdef TESSERA_SANITIZED
  GTEST_SKIP() << "a thousand threads take a minute to start under a sanitizer";
#endif
  const int threads = make_executor(kMostThreads)->threads();
  EXPECT_GE(threads, 1);
  EXPECT_LE(threads, 1024);
}

TEST(MakeExecutor, TakesAllCoresForZero) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  EXPECT_EQ(make_executor(ExecutorKind::Threads, 0)->threads(), std::max(1, cores));
  EXPECT_GE(make_executor()->threads(), 1);
}

TEST(MakeExecutor, HasMoreThreadsThanCoresIfAskedFor) {
  const int threads = 2 * std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
  EXPECT_EQ(make_executor(threads)->threads(), threads);
}

TEST(MakeExecutor, HasThreadsAlwaysAndTbbOnlyWhereBuilt) {
  EXPECT_TRUE(has_executor(ExecutorKind::Threads));
  if (has_executor(ExecutorKind::Tbb))
    EXPECT_NO_THROW(make_executor(ExecutorKind::Tbb, 1));
  else
    EXPECT_THROW(make_executor(ExecutorKind::Tbb, 1), Error);
}

}  // namespace
}  // namespace tessera
