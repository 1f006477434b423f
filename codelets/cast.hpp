#pragma once

#include <cstdint>

#include "tessera/base/half.hpp"

namespace tessera::codelets {

// to[i] = T(from[i]) for i in [0, count), to the bit what the constructors of Half and BFloat16
// give (NaN is another NaN at most), on vectors. The two must not overlap. Never allocates, throws
// or prints; thread-safe.
void cast_floats(const float* from, std::int64_t count, Half* to) noexcept;
void cast_floats(const float* from, std::int64_t count, BFloat16* to) noexcept;

}  // namespace tessera::codelets
