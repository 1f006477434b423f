#pragma once

#include <cstdint>

#include "tessera/base/data_type.hpp"
#include "tessera/base/units.hpp"

// Cycles of the softmax over rows and of its gradient (softmax.hpp). PopLibs composes its softmax
// of operations over whole tensors, so there is no estimator of a kernel that walks a row. The
// figures are counts of instructions by the rules of network_cycles.hpp, in vectors of two floats,
// but for the exponential and the inverse: these take the 6 cycles for two floats, loads and stores
// included, of PopLibs 3.4's table of operations (getPerfInfo in popopsCycleEstimators.cpp), which
// is more than their instructions. A row belongs to one worker. All functions are pure, never
// allocate and are O(1). Sizes must be >= 0, workers >= 1.
namespace tessera::codelets {

// The work of the worker of a tile that has the most.
struct SoftmaxWork {
  std::int64_t rows = 0;
  std::int64_t runs = 0;    // of adjacent values: one for each block of a row
  std::int64_t values = 0;  // a run of odd length counts one more
  std::int64_t masked = 0;  // values of runs that the mask does not keep whole
};

// Returns the cycles of softmax().
Cycles softmax_cycles(const SoftmaxWork& slowest, DataType type, std::int64_t workers);

// Returns the cycles of softmax_gradient().
Cycles softmax_gradient_cycles(const SoftmaxWork& slowest, DataType type, std::int64_t workers);

}  // namespace tessera::codelets
