#pragma once

#include <cstdint>
#include <span>

namespace tessera::codelets {

// Elements that the list of find_large() has beyond the number of values.
inline constexpr std::int64_t kLargeSlack = 1;

// Lists the positions of the values whose magnitude is not below the threshold, those of NaN among
// them, ascending, and returns how many there are. `positions` has values.size() + kLargeSlack
// elements, of which those after the result are overwritten. Never allocates, throws or prints;
// thread-safe.
std::int64_t find_large(std::span<const float> values, float threshold,
                        std::span<std::uint32_t> positions) noexcept;

}  // namespace tessera::codelets
