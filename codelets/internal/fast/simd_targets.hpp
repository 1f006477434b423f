#pragma once

#include <cstdint>
#include <string>
#include <vector>

// The instruction sets for which the vector kernels were compiled, and a class that runs the
// kernels on one of them. For tests and benchmarks; a kernel selects the best one itself.
namespace tessera::codelets::internal {

struct SimdTarget {
  std::string name;  // the name in Highway, for example "AVX2"
  std::int64_t bit = 0;
  bool runs_here = false;  // this CPU and this operating system support it
};

// Returns the instruction sets of this build, best first, including those that this CPU cannot run.
// Those that TESSERA_TARGET excludes (base/instruction_sets.hpp) count as sets that it cannot run.
std::vector<SimdTarget> simd_targets();

// Returns the name of the one that a kernel would use now.
std::string simd_target_in_use();

// From construction to destruction all kernels of the process run on one target. Only one object
// may exist at a time, and no kernel may be running when it is constructed or destroyed.
class UseSimdTarget {
 public:
  explicit UseSimdTarget(const SimdTarget& target);
  ~UseSimdTarget();
  UseSimdTarget(const UseSimdTarget&) = delete;
  UseSimdTarget& operator=(const UseSimdTarget&) = delete;
};

}  // namespace tessera::codelets::internal
