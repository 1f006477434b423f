#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

// Returns ceil(n / d) for n >= 0, d >= 1. Example: ceil_div(7, 3) == 3.
constexpr std::int64_t ceil_div(std::int64_t n, std::int64_t d) { return n / d + (n % d != 0); }

// Returns n rounded up to a multiple of d, for n >= 0, d >= 1. Overflow is not checked.
// Example: round_up(7, 3) == 9.
constexpr std::int64_t round_up(std::int64_t n, std::int64_t d) { return ceil_div(n, d) * d; }

// Returns a * b. Throws Error{LimitExceeded}, which names `what`, if it does not fit in 64 bits.
std::int64_t checked_mul(std::int64_t a, std::int64_t b, std::string_view what);

// Returns `value` as a 32-bit index, 0 .. 2^31 - 1. Throws Error{LimitExceeded}, which names
// `what`, the value and the limits, if it is outside that range.
std::int32_t checked_int32(std::int64_t value, std::string_view what);

}  // namespace tessera
