#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::codelets {

// Where `count` floats from float `first` of each source on are added up, `sources` being the bytes
// of floats on a tile: to[i] = sources[0][first + i] + sources[1][first + i] + ... for i in
// [0, count), in this order, each sum rounded to float, on vectors. At least one source; `to` may
// be where one of them begins with `first`. Never allocates, throws or prints; thread-safe.
struct FloatSums {
  std::span<const std::byte* const> sources;
  std::int64_t first = 0, count = 0;
};
void add_floats(const FloatSums& sums, float* to) noexcept;

}  // namespace tessera::codelets
