#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tessera/base/matrix.hpp"
#include "tessera/codelets/cast.hpp"
#include "tessera/codelets/transpose.hpp"

// Copies between the caller's views, of any strides, and rows of contiguous elements. A view whose
// columns are contiguous (an operand that has the batch first) is transposed in squares; one
// without contiguous rows or columns is copied element by element.
namespace tessera::host::internal {

// Sets row r of `to`, which begins at to + r * stride, to row r of `from`. The two must not
// overlap.
template <class T>
void copy_to_rows(MatrixView<const T> from, T* to, std::int64_t stride) {
  if (!from.rows_are_contiguous() && from.row_stride == 1)
    return codelets::transpose(from.data, from.col_stride, from.cols, from.rows, to, stride);
  for (std::int64_t r = 0; r < from.rows; ++r, to += stride)
    if (from.rows_are_contiguous())
      std::memcpy(to, from.row(r), std::size_t(from.cols) * sizeof(T));
    else
      for (std::int64_t c = 0; c < from.cols; ++c) to[c] = from(r, c);
}

// Does the same with numbers of 16 bits, widened to floats.
template <class T>
  requires(!std::is_same_v<T, float>)
void copy_to_rows(MatrixView<const T> from, float* to, std::int64_t stride) {
  constexpr std::int64_t kRows = 32, kColumns = 64;  // in rows at once, for other than plain rows
  std::array<T, kRows * kColumns> plain;
  if (from.rows_are_contiguous() && from.row_stride == from.cols && stride == from.cols)
    return codelets::widen(from.data, from.rows * from.cols, to);
  if (from.rows_are_contiguous()) {
    for (std::int64_t r = 0; r < from.rows; ++r)
      codelets::widen(from.row(r), from.cols, to + r * stride);
    return;
  }
  for (std::int64_t first = 0; first < from.rows; first += kRows)
    for (std::int64_t c = 0; c < from.cols; c += kColumns) {
      const MatrixView<const T> part = from.sub({first, std::min(first + kRows, from.rows)},
                                                {c, std::min(c + kColumns, from.cols)});
      copy_to_rows<T>(part, plain.data(), kColumns);
      for (std::int64_t r = 0; r < part.rows; ++r)
        codelets::widen(plain.data() + r * kColumns, part.cols, to + (first + r) * stride + c);
    }
}

// Sets row r of `to` to the row that begins at from + r * stride. The two must not overlap.
template <class T>
void copy_from_rows(const T* from, std::int64_t stride, MatrixView<T> to) {
  if (!to.rows_are_contiguous() && to.row_stride == 1)
    return codelets::transpose(from, stride, to.rows, to.cols, to.data, to.col_stride);
  for (std::int64_t r = 0; r < to.rows; ++r, from += stride)
    if (to.rows_are_contiguous())
      std::memcpy(to.row(r), from, std::size_t(to.cols) * sizeof(T));
    else
      for (std::int64_t c = 0; c < to.cols; ++c) to(r, c) = from[c];
}

// Does the same with floats, rounded to Half or BFloat16.
template <class T>
  requires(!std::is_same_v<T, float>)
void copy_from_rows(const float* from, std::int64_t stride, MatrixView<T> to) {
  constexpr std::int64_t kRows = 32, kColumns = 64;  // rounded at once, for other than plain rows
  std::array<T, kRows * kColumns> rounded;
  if (to.rows_are_contiguous() && to.row_stride == to.cols && stride == to.cols)
    return codelets::cast_floats(from, to.rows * to.cols, to.data);
  if (to.rows_are_contiguous()) {
    for (std::int64_t r = 0; r < to.rows; ++r)
      codelets::cast_floats(from + r * stride, to.cols, to.row(r));
    return;
  }
  for (std::int64_t first = 0; first < to.rows; first += kRows)
    for (std::int64_t c = 0; c < to.cols; c += kColumns) {
      const MatrixView<T> part =
          to.sub({first, std::min(first + kRows, to.rows)}, {c, std::min(c + kColumns, to.cols)});
      for (std::int64_t r = 0; r < part.rows; ++r)
        codelets::cast_floats(from + (first + r) * stride + c, part.cols,
                              rounded.data() + r * kColumns);
      copy_from_rows<T>(rounded.data(), kColumns, part);
    }
}

}  // namespace tessera::host::internal
