#include "tessera/base/int_math.hpp"

#include <fmt/format.h>

#include <limits>

#include "tessera/base/error.hpp"

namespace tessera {
std::int64_t checked_mul(std::int64_t a, std::int64_t b, std::string_view what) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result))
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("{}: {} * {} does not fit in 64 bits", what, a, b));
  return result;
}

std::int32_t checked_int32(std::int64_t value, std::string_view what) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  if (value < 0 || value > kMax)
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("{} is {}; it must be in 0..{} (32-bit index)", what, value, kMax));
  return static_cast<std::int32_t>(value);
}

}  // namespace tessera
