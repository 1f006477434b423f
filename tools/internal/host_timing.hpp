#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tessera/host/times.hpp"

namespace tessera::tools::internal {

// The result of repeated runs.
struct MedianTimes {
  host::HostTimes times;  // of the run whose time is the median
  std::int64_t runs = 0;  // number of measured runs
};

// Measures run(), which returns HostTimes: one run allocates memory and warms the caches, then 3 to
// 25 runs are measured, until they have taken at least a tenth of a second together.
template <class Run>
MedianTimes measure(const Run& run) {
  constexpr int kFewest = 3, kMost = 25;
  constexpr double kSeconds = 0.1;
  run();
  std::vector<host::HostTimes> times;
  for (double sum = 0; std::ssize(times) < kFewest || (sum < kSeconds && std::ssize(times) < kMost);
       sum += times.back().seconds)
    times.push_back(run());
  const auto middle = times.begin() + std::ssize(times) / 2;
  std::nth_element(times.begin(), middle, times.end(),
                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  return {*middle, std::ssize(times)};
}

}  // namespace tessera::tools::internal
