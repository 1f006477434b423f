#include "tessera/arrays/mapped/slice.hpp"

#include <algorithm>
#include <limits>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::arrays {
namespace {

// Returns an end of a slice, counted from the end if negative, clamped to [least, most].
std::int64_t clamped(std::int64_t index, std::int64_t length, std::int64_t least,
                     std::int64_t most) {
  return std::clamp(index < 0 ? index + length : index, least, most);
}

}  // namespace

Progression Slice::reduced(std::int64_t length) const {
  // The least 64-bit number cannot be negated; a step of that size takes one index at most anyway.
  constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max();
  const std::int64_t by = std::max(step.value_or(1), -kLongest);
  if (by == 0) throw Error(ErrorCode::InvalidArgument, "a slice has step 0; it must go somewhere");
  const bool forward = by > 0;
  const std::int64_t least = forward ? 0 : -1, most = forward ? length : length - 1;
  const std::int64_t from = start ? clamped(*start, length, least, most) : forward ? least : most;
  const std::int64_t to = stop ? clamped(*stop, length, least, most) : forward ? most : least;
  const std::int64_t way = forward ? to - from : from - to;
  return {from, by, way <= 0 ? 0 : ceil_div(way, forward ? by : -by)};
}

}  // namespace tessera::arrays
