#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/block_shape.hpp"

namespace tessera::codelets {

// The most values of 16 bits that a block of place_sums() may have.
inline constexpr std::int64_t kMostPlaceBlock = 4096;

// The arguments of place_sums(): block rows of a matrix that is given as lists of places and
// values, as other libraries keep it, and not as the words of a bucket. T is float, Half or
// BFloat16; Index and Position are std::int32_t or std::int64_t.
template <class T, class Index, class Position>
struct PlaceSums {
  BlockShape block;
  std::span<const Position> row_begin;  // [block rows + 1] positions in `col`
  const Index* col = nullptr;           // block columns, in any order
  const T* values = nullptr;            // [places][block.rows][block.cols]
  const T* in = nullptr;                // [block columns * block.cols][z]
  std::int64_t in_stride = 0;           // elements
  float* out = nullptr;                 // [block rows * block.rows][z]
  std::int64_t out_stride = 0;          // elements
  std::int64_t z = 0;
  bool replaces = true;  // false: adds to what `out` has
};

// Sets out[r][z] = sum over the places of row r, in their order: value * in[its column][z], or adds
// it. The columns are below 2^32 elements, and blocks of 16-bit values have at most
// kMostPlaceBlock of them. Never allocates, throws or prints; thread-safe.
template <class T, class Index, class Position>
void place_sums(const PlaceSums<T, Index, Position>& sums) noexcept;

}  // namespace tessera::codelets
