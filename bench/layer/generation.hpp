#pragma once

#include <string>

namespace tessera::bench {

// The kinds of processors for which bars are known, by the measured ratio of the bytes a second
// that a core reads from its second-level cache to its peak of float operations. Bars then mean the
// same on the next computer, whatever its name.
enum class Generation {
  Zen4Like,  // 0.7 to 1.3 bytes an operation
  Zen5Like,  // 0.35 to 0.65
  Other      // figures without a verdict
};

struct MeasuredGeneration {
  Generation generation = Generation::Other;
  double bytes_per_flop = 0;
  std::string instruction_set;
};

// Measures this computer with the instruction set in use. Takes about 0.2 s.
MeasuredGeneration measure_generation();

// Returns "Zen 4", "Zen 5" or "neither Zen 4 nor Zen 5".
std::string to_string(Generation generation);

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
