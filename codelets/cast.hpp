#pragma once

#include <cstdint>

#include "tessera/base/half.hpp"

namespace tessera::codelets {

// Sets to[i] = T(from[i]) for i in [0, count) with vectors. The bits are those of the constructors
// of Half and BFloat16 (only a NaN may become another NaN). The two arrays must not overlap. Never
// allocates, throws or prints; thread-safe.
void cast_floats(const float* from, std::int64_t count, Half* to) noexcept;
void cast_floats(const float* from, std::int64_t count, BFloat16* to) noexcept;

// Sets to[i] = float(from[i]) for i in [0, count) with vectors, which is exact; otherwise as
// cast_floats.
void widen(const Half* from, std::int64_t count, float* to) noexcept;
void widen(const BFloat16* from, std::int64_t count, float* to) noexcept;

}  // namespace tessera::codelets
