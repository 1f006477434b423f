#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Which instruction sets the fast kernels were compiled for, and how to run on one of them. For
// tests and benchmarks; a kernel finds the best one by itself.
namespace tessera::codelets::internal {

struct SimdTarget {
  std::string name;  // as Highway calls it, for example "AVX2"
  std::int64_t bit = 0;
  bool runs_here = false;  // this CPU and this operating system know it
};

// Best first. Those this build has, and those this CPU cannot run among them.
std::vector<SimdTarget> simd_targets();

// The one that a kernel called now would run on.
std::string simd_target_in_use();

// From construction to destruction all kernels of the process run on one target. One at a time, and
// no kernel may be running when it begins or ends.
class UseSimdTarget {
 public:
  explicit UseSimdTarget(const SimdTarget& target);
  ~UseSimdTarget();
  UseSimdTarget(const UseSimdTarget&) = delete;
  UseSimdTarget& operator=(const UseSimdTarget&) = delete;
};

}  // namespace tessera::codelets::internal
