#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tessera/base/executor.hpp"

namespace tessera::bench {

// An executor of one thread on std::jthread, so that single-thread times do not include oneTBB.
std::unique_ptr<Executor> sequential();

enum class Clock { Wall, OwnThread };

double seconds(const std::function<void()>& body, Clock clock);

// Returns the median times of bodies that run in turns, so that other programs disturb them alike,
// by this thread's CPU clock, which stops while others use the core. Each is timed `repeats` times
// after a run that is not timed.
std::vector<double> medians(const std::vector<std::function<void()>>& bodies, int repeats = 41);

// Returns the least times: what neighbours who use up the caches of other cores disturb least.
std::vector<double> leasts(const std::vector<std::function<void()>>& bodies, int repeats);

// Two threads need a core each, and other programs may be using one. Both times are therefore taken
// by the wall clock, and only if short counting loops before and after show that two cores were
// free.
class ThreadRatio {
 public:
  ThreadRatio();
  struct Figure {
    double median = 0;  // of the ratios of neighbouring runs
    std::int64_t runs = 0;
  };

  // The ratio of the times of body(one thread) and body(two threads).
  Figure operator()(const std::function<void(Executor&)>& body);

 private:
  bool two_are_free();

  std::unique_ptr<Executor> one_, two_;
};

}  // namespace tessera::bench
