#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/dims.hpp"

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

// True: one column of blocks is added up in lanes, as that of elements is: blocks of 4, 8 or a
// multiple of 16 columns.
bool sums_blocks_in_lanes(BlockShape block);

// Sets out[r][z] = sum over the places of row r, in their order: value * in[its column][z], or adds
// it. One column (z 1) of elements is added up in lanes, and so is one of blocks where
// sums_blocks_in_lanes(), columns have 32 bits and rows of `in` follow one another. The columns are
// below 2^32 elements, and blocks of 16-bit values have at most kMostPlaceBlock of them. Never
// allocates, throws or prints; thread-safe.
template <class T, class Index, class Position>
void place_sums(const PlaceSums<T, Index, Position>& sums) noexcept;

// The arguments of scatter_places(): elements of a matrix that is given as a list of places or in
// compressed columns. T and Index are those of PlaceSums.
template <class T, class Index>
struct ScatteredPlaces {
  const Index* row = nullptr;  // [places] rows of `out`
  const T* values = nullptr;   // [places]
  const T* in = nullptr;       // [columns][z]
  std::int64_t in_stride = 0;  // elements
  float* out = nullptr;        // [rows][z]
  std::int64_t out_stride = 0;
  std::int64_t z = 0;
};

// Adds value * in[col[i]][z] to out[row[i]][z] for the places i of a range, in their order. Never
// allocates, throws or prints; thread-safe if the rows of `out` are.
template <class T, class Index>
void scatter_places(const ScatteredPlaces<T, Index>& places, const Index* col, Range i) noexcept;

// Does the same for a matrix in compressed columns: column c has the places
// [begin[c], begin[c + 1]), and `begin` one position more than there are columns. The places of `i`
// are places of columns.
template <class T, class Index, class Position>
void scatter_columns(const ScatteredPlaces<T, Index>& places, std::span<const Position> begin,
                     Range i) noexcept;

}  // namespace tessera::codelets
