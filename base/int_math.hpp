#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

// ceil(n / d) for n >= 0, d >= 1. Example: ceil_div(7, 3) == 3.
constexpr std::int64_t ceil_div(std::int64_t n, std::int64_t d) { return n / d + (n % d != 0); }

// n rounded up to a multiple of d, for n >= 0, d >= 1. Example: round_up(7, 3) == 9.
constexpr std::int64_t round_up(std::int64_t n, std::int64_t d) { return ceil_div(n, d) * d; }

// a * b and a + b, or Error{LimitExceeded} that names `what` when the result leaves 64 bits.
std::int64_t checked_mul(std::int64_t a, std::int64_t b, std::string_view what);
std::int64_t checked_add(std::int64_t a, std::int64_t b, std::string_view what);

// `value` as a 32-bit index, 0 .. 2^31 - 1, or Error{LimitExceeded} that names `what`, the value
// and the limits.
std::int32_t checked_int32(std::int64_t value, std::string_view what);

}  // namespace tessera
