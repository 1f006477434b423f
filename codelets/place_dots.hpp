#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/block_shape.hpp"

namespace tessera::codelets {

// Places of one block row: a part of a list of places.
struct RowPlaces {
  std::int64_t row = 0;    // block row
  std::int64_t first = 0;  // position of the first one in the list
  std::int64_t count = 0;
};

// The arguments of place_dots(): places of a gradient that are given as a list, not as the words of
// a bucket. All pointers are to the first element of a row. T is float, Half or BFloat16; Index is
// std::int32_t or std::int64_t.
template <class T, class Index = std::int32_t>
struct PlaceDots {
  BlockShape block;
  std::span<const RowPlaces> rows;  // those to compute, no place twice
  std::span<const Index> columns;   // block columns of all places of the list, in any order
  const T* q_grad = nullptr;        // [block rows * block.rows][z]
  std::int64_t q_grad_stride = 0;   // elements
  const T* s = nullptr;             // [block columns * block.cols][z]
  std::int64_t s_stride = 0;        // elements
  std::int64_t z = 0;
  float* gradients = nullptr;  // [columns][block.rows][block.cols], of all places of the list
  bool replaces = true;        // false: adds to the gradients
};

// Sets gradients[i][r][c] = sum over z of
//   q_grad[row * block.rows + r][z] * s[columns[i] * block.cols + c][z]
// for the places i of `rows`, with the bits of the GradW kernels, or adds it. The columns are below
// 2^32 elements. Never allocates, throws or prints; thread-safe.
template <class T, class Index>
void place_dots(const PlaceDots<T, Index>& dots) noexcept;

}  // namespace tessera::codelets
