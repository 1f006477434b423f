#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::codelets {

// The arguments of add_floats(). `sources` are the bytes of floats on tiles; `count` floats are
// added, from float `first` of each source on.
struct FloatSums {
  std::span<const std::byte* const> sources;
  std::int64_t first = 0, count = 0;
};

// Sets to[i] = sources[0][first + i] + sources[1][first + i] + ... for i in [0, count), in this
// order, each sum rounded to float, with vectors. There must be at least one source. `to` may be
// the address of float `first` of one of the sources. Never allocates, throws or prints;
// thread-safe.
void add_floats(const FloatSums& sums, float* to) noexcept;

// Sets to[i] = to[i] + from[i] and then from[i] = 0 for i in [0, count), with vectors. The arrays
// must not overlap. Never allocates, throws or prints; thread-safe.
void add_and_clear(float* from, std::int64_t count, float* to) noexcept;

// Returns the largest number of a list, 0 for an empty one, with vectors. Never allocates, throws
// or prints; thread-safe.
std::uint32_t largest(std::span<const std::uint32_t> list) noexcept;
std::uint64_t largest(std::span<const std::uint64_t> list) noexcept;

}  // namespace tessera::codelets
