#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace tessera {

// Returns the least value in (none, most] that fits, or nullopt if none does. Requires that all
// values above a fitting one fit and that `none` does not. Steps double until a value fits; then
// the range is bisected. Calls fits(value) about 2 * log2(answer - none) times.
template <class Fits>
std::optional<std::int64_t> least_fitting(std::int64_t none, std::int64_t most, const Fits& fits) {
  if (none >= most) return {};
  std::int64_t low = none, high = none + 1;
  for (std::int64_t step = 1; !fits(high); step *= 2) {
    if (high == most) return {};
    low = high;
    high = std::min(high + 2 * step, most);
  }
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace tessera
