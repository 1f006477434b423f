#pragma once

#include <cstdint>

#include "tessera/base/half.hpp"

namespace tessera::codelets {

// Sets to[c * to_stride + r] = from[r * from_stride + c] for r in [0, rows) and c in [0, cols):
// the transpose of a matrix with contiguous rows. Strides are in elements and may be any number.
// The two must not overlap. Whole cache lines are moved on the side whose rows are farther apart.
// Never allocates, throws or prints; thread-safe.
void transpose(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t cols,
               float* to, std::int64_t to_stride) noexcept;
void transpose(const Half* from, std::int64_t from_stride, std::int64_t rows, std::int64_t cols,
               Half* to, std::int64_t to_stride) noexcept;
void transpose(const BFloat16* from, std::int64_t from_stride, std::int64_t rows, std::int64_t cols,
               BFloat16* to, std::int64_t to_stride) noexcept;

}  // namespace tessera::codelets
