#pragma once

#include <string>

namespace tessera::bench {

// The bytes a second that a core reads from its second-level cache by its peak of float operations.
// Bars go by this ratio, so that they mean the same on the next computer, whatever its name.
struct CacheOfPeak {
  double bytes_per_flop = 0;  // 0.5 on Zen 5, 1 on Zen 3 and Zen 4
  std::string instruction_set;
};

// Measures this computer with the instruction set in use. Takes about 0.2 s.
CacheOfPeak measure_cache_of_peak();

// From construction to destruction all kernels of the process run on AVX2, as on a computer that
// has nothing wider. No kernel may be running at either time.
class UseAvx2 {
 public:
  UseAvx2();
  ~UseAvx2();
  UseAvx2(const UseAvx2&) = delete;
  UseAvx2& operator=(const UseAvx2&) = delete;

  static bool is_possible();
};

}  // namespace tessera::bench
