#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tessera/base/executor.hpp"

namespace tessera::bench {

// One thread. Not oneTBB's: its limit of one thread would hold for every other executor too.
std::unique_ptr<Executor> sequential();

enum class Clock { Wall, OwnThread };

double seconds(const std::function<void()>& body, Clock clock);

// Median times of bodies that take turns, so that neighbours on the machine disturb them alike, by
// this thread's own clock, which stands still while others have the core.
std::vector<double> medians(const std::vector<std::function<void()>>& bodies);

// Threads need a core each, which a neighbour on the machine may have. So both are measured by the
// wall's clock, and only where short counting loops before and behind say that two were free.
class ThreadRatio {
 public:
  ThreadRatio();
  struct Figure {
    double median = 0;  // of the ratios of neighbouring runs
    std::int64_t runs = 0;
  };

  // How much faster body(two threads) is than body(one thread).
  Figure operator()(const std::function<void(Executor&)>& body);

 private:
  bool two_are_free();

  std::unique_ptr<Executor> one_, two_;
};

}  // namespace tessera::bench
