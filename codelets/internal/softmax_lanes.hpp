#pragma once

#include <array>
#include <cstddef>
#include <limits>

namespace tessera::codelets::internal {

// Sums of a row are taken side by side in so many lanes, on every vector width.
inline constexpr std::size_t kSoftmaxLanes = 8;
using SoftmaxLanes = std::array<float, kSoftmaxLanes>;

// The score of what a mask does not keep: its exponential is 0.
inline constexpr float kLeastScore = -std::numeric_limits<float>::infinity();

// Returns the sum of the lanes: the upper half is added to the lower half, until one is left.
inline float sum_of(SoftmaxLanes lanes) {
  for (std::size_t half = kSoftmaxLanes / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

}  // namespace tessera::codelets::internal
