#pragma once

#include <chrono>
#include <cstdint>

#include "tessera/base/stopwatch.hpp"
#include "tessera/host/times.hpp"

namespace tessera::host::internal {

// Measures one call of one group and, on each thread, the parts of it that are in kernels. A call
// of few multiplications is not divided: reading the clock takes 20 to 35 ns, and the clocks of its
// parts a tenth of a call of 7 us and a third of one of 0.7 us.
class PassClock {
 public:
  static constexpr std::int64_t kLeastDivided = 1 << 18;  // multiplications

  explicit PassClock(std::int64_t multiplications) : divides_(multiplications >= kLeastDivided) {}

  // Adds the seconds of a scope to a sum, if calls of this size are divided.
  class Part {
   public:
    Part(const PassClock& clock, double& sum) : sum_(clock.divides_ ? &sum : nullptr) {
      if (sum_ != nullptr) start_ = Clock::now();
    }
    ~Part() {
      if (sum_ != nullptr) *sum_ += std::chrono::duration<double>(Clock::now() - start_).count();
    }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    using Clock = std::chrono::steady_clock;
    double* sum_;
    Clock::time_point start_;
  };

  // Adds the seconds of the call, and those in kernels of its threads' scratch memory; all seconds
  // count as kernels' if the call is not divided.
  template <class Threads>
  void add_to(HostTimes& times, const Threads& threads) const {
    const double seconds = all_.seconds();
    times.seconds += seconds;
    if (!divides_) times.kernel_seconds += seconds;
    for (const auto& thread : threads) times.kernel_seconds += thread.kernel_seconds;
  }

 private:
  bool divides_;
  Stopwatch all_;
};

}  // namespace tessera::host::internal
