#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "tessera/host/times.hpp"

namespace tessera::study {

// Returns true once measuring is to end, for example after Ctrl-C.
using Stop = std::function<bool()>;

// The result of repeated runs.
struct MedianTimes {
  host::HostTimes times;  // of the run whose time is the median
  std::int64_t runs = 0;  // number of measured runs
  double spread = 0;      // half the range of the middle half of the runs, divided by the median
};

// Returns the median and the spread of runs; there is at least one.
inline MedianTimes median_of(std::vector<host::HostTimes> times) {
  std::ranges::sort(times, {}, &host::HostTimes::seconds);
  const std::size_t all = times.size();
  const double range = times[all - 1 - all / 4].seconds - times[all / 4].seconds;
  const host::HostTimes& middle = times[all / 2];
  return {middle, std::ssize(times), middle.seconds > 0 ? range / 2 / middle.seconds : 0};
}

// Measures run(), which returns HostTimes: one run allocates memory and warms the caches, then 3 to
// 25 runs are measured, until they have taken at least a tenth of a second together. If the spread
// is then above `spread`, up to 75 more runs in a quarter of a second follow. After `is_stopped`
// returns true no run begins but the first one.
template <class Run>
MedianTimes measure(const Run& run, const Stop& is_stopped, double spread = 1) {
  constexpr std::int64_t kFewest = 3, kMost = 25, kMostForSpread = 100;
  constexpr double kSeconds = 0.1, kSecondsForSpread = 0.35;
  run();
  std::vector<host::HostTimes> times;
  double sum = 0;
  const auto add = [&] {
    times.push_back(run());
    sum += times.back().seconds;
  };
  add();
  const auto goes_on = [&] {
    return std::ssize(times) < kFewest || (sum < kSeconds && std::ssize(times) < kMost);
  };
  while (goes_on() && !is_stopped()) add();
  MedianTimes result = median_of(times);
  while (result.spread > spread && sum < kSecondsForSpread && result.runs < kMostForSpread &&
         !is_stopped()) {
    add();
    result = median_of(times);
  }
  return result;
}

}  // namespace tessera::study
