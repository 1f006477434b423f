#include "tessera/bench/timing.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <stdexcept>
#include <thread>

#include "tessera/base/random.hpp"

namespace tessera::bench {
namespace {

double now(Clock clock) {
  timespec time{};
  clock_gettime(clock == Clock::Wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::vector<std::vector<double>> times_of(const std::vector<std::function<void()>>& bodies,
                                          Clock clock, int repeats) {
  std::vector<std::vector<double>> times(bodies.size());
  for (int i = 0; i <= repeats; ++i)
    for (std::size_t b = 0; b < bodies.size(); ++b) {
      const double time = seconds(bodies[b], clock);
      if (i > 0) times[b].push_back(time);  // the first fills caches
    }
  for (auto& t : times) std::sort(t.begin(), t.end());
  return times;
}

// This takes about half a millisecond on one thread.
void count(Executor& executor) {
  executor.for_each(32, [](std::int64_t seed) {
    Random random(static_cast<std::uint64_t>(seed));
    std::int64_t sum = 0;
    for (int i = 0; i < 5'000; ++i) sum += random.below(1000);
    if (sum < 0) throw std::runtime_error("counted below zero");
  });
}

}  // namespace

std::unique_ptr<Executor> sequential() { return make_executor(ExecutorKind::Threads, 1); }

double seconds(const std::function<void()>& body, Clock clock) {
  const double start = now(clock);
  body();
  return now(clock) - start;
}

std::vector<double> medians(const std::vector<std::function<void()>>& bodies, int repeats) {
  std::vector<double> result;
  for (const auto& t : times_of(bodies, Clock::OwnThread, repeats))
    result.push_back(t[t.size() / 2]);
  return result;
}

std::vector<double> leasts(const std::vector<std::function<void()>>& bodies, int repeats) {
  std::vector<double> result;
  for (const auto& t : times_of(bodies, Clock::OwnThread, repeats)) result.push_back(t.front());
  return result;
}

ThreadRatio::ThreadRatio() : one_(sequential()), two_(make_executor(2)) {}

ThreadRatio::Figure ThreadRatio::operator()(const std::function<void(Executor&)>& body) {
  constexpr int kMostRuns = 1000, kWanted = 41;
  std::vector<double> ratios;
  for (int i = 0; i < kMostRuns && std::ssize(ratios) < kWanted; ++i) {
    if (!two_are_free()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    const double slow = seconds([&] { body(*one_); }, Clock::Wall);
    const double fast = seconds([&] { body(*two_); }, Clock::Wall);
    if (two_are_free()) ratios.push_back(slow / fast);
  }
  std::sort(ratios.begin(), ratios.end());
  return {ratios.empty() ? 0 : ratios[ratios.size() / 2], std::ssize(ratios)};
}

bool ThreadRatio::two_are_free() {
  const double slow = seconds([&] { count(*one_); }, Clock::Wall);
  return slow / seconds([&] { count(*two_); }, Clock::Wall) > 1.75;
}

}  // namespace tessera::bench
