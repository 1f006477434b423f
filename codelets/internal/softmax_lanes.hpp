#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "tessera/codelets/softmax.hpp"

namespace tessera::codelets::internal {

// Sums of a row are taken side by side in so many lanes, on every vector width.
inline constexpr std::size_t kSoftmaxLanes = 8;
using SoftmaxLanes = std::array<float, kSoftmaxLanes>;

// The score of what a mask does not keep: its exponential is 0.
inline constexpr float kLeastScore = -std::numeric_limits<float>::infinity();

// Computes a row whose largest product scale * score is not finite, if its scores are: the products
// are then beyond the range of float, and their difference is NaN. The difference of the scores is
// scaled instead. Returns false, and writes nothing, if the best score of the row is not finite. It
// is plain C++, so the reference kernel and the one with vectors have the same bits.
template <class T>
bool softmax_of_large_row(const SoftmaxRows& rows, std::int64_t row, const T* scores,
                          T* out) noexcept;

// Returns the sum of the lanes: the upper half is added to the lower half, until one is left.
inline float sum_of(SoftmaxLanes lanes) {
  for (std::size_t half = kSoftmaxLanes / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

}  // namespace tessera::codelets::internal
