#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "tessera/base/dims.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/codelets/cast.hpp"
#include "tessera/codelets/transpose.hpp"

// Copies between the caller's views, of any strides, and rows of contiguous elements. A view whose
// columns are contiguous (an operand that has the batch first) is transposed in squares; one
// without contiguous rows or columns is copied element by element.
namespace tessera::host::internal {

// Asks for a row that will be copied soon, if rows are a page or more apart: the hardware fetches
// ahead within a page only. AMD Zen 3, copying 1024 x 4096 floats in panels of 64 columns: 0.67 of
// the time.
template <class T>
void fetch_far_row(MatrixView<const T> from, std::int64_t row) {
  constexpr std::int64_t kPage = 4096 / sizeof(T), kLine = 64 / sizeof(T);  // elements
  if (from.row_stride < kPage || row >= from.rows) return;
  for (std::int64_t c = 0; c < from.cols; c += kLine) __builtin_prefetch(from.row(row) + c);
}

// Returns true if rows of `view` and of a memory with this stride follow one another in both, as
// those of one column do.
template <class T>
bool is_one_piece(MatrixView<T> view, std::int64_t stride) {
  return view.rows_are_contiguous() && view.row_stride == view.cols && stride == view.cols;
}

// Returns true if each row begins at a multiple of so many elements in memory, as rows of NumPy's
// arrays do not: loads of such vectors do not cross cache lines.
template <class T>
bool rows_are_aligned(MatrixView<T> view, std::int64_t elements) {
  const std::uintptr_t bytes = std::uintptr_t(elements) * sizeof(T);
  return reinterpret_cast<std::uintptr_t>(view.data) % bytes == 0 &&
         view.row_stride % elements == 0;
}

// Sets row r of `to`, which begins at to + r * stride, to row r of `from`. The two must not
// overlap.
template <class T>
void copy_to_rows(MatrixView<const T> from, T* to, std::int64_t stride) {
  constexpr std::int64_t kAhead = 8;  // rows
  if (!from.rows_are_contiguous() && from.row_stride == 1)
    return codelets::transpose(from.data, from.col_stride, from.cols, from.rows, to, stride);
  for (std::int64_t r = 0; r < from.rows; ++r, to += stride) {
    if (!from.rows_are_contiguous()) {
      for (std::int64_t c = 0; c < from.cols; ++c) to[c] = from(r, c);
      continue;
    }
    fetch_far_row(from, r + kAhead);
    std::memcpy(to, from.row(r), std::size_t(from.cols) * sizeof(T));
  }
}

// Rows of fewer elements are copied by moves whose size the compiler knows: a call of memcpy for
// each takes longer than what it copies.
inline constexpr std::size_t kShortRow = 16;

// Calls run(columns as a constant) for 1 .. kShortRow - 1 columns.
template <class Run>
void with_short_row(std::int64_t columns, const Run& run) {
  const auto run_if = [&]<std::size_t kColumns>() {
    if (columns == std::int64_t{kColumns}) run(std::integral_constant<std::size_t, kColumns>());
  };
  [&]<std::size_t... kBefore>(std::index_sequence<kBefore...>) {
    (run_if.template operator()<kBefore + 1>(), ...);
  }(std::make_index_sequence<kShortRow - 1>());
}

// Does the same as copy_to_rows(), and fills each row up with zeros to `filled` elements.
template <class T>
void copy_filled_rows(MatrixView<const T> from, T* to, std::int64_t stride, std::int64_t filled) {
  const bool is_short = from.cols < std::int64_t{kShortRow} && filled <= std::int64_t{kShortRow};
  if (is_short && from.rows_are_contiguous())
    return with_short_row(from.cols, [&](auto columns) {
      for (std::int64_t r = 0; r < from.rows; ++r, to += stride) {
        std::memcpy(to, from.row(r), columns * sizeof(T));
        std::fill(to + columns, to + filled, T());
      }
    });
  copy_to_rows(from, to, stride);
  for (std::int64_t r = 0; r < from.rows; ++r)
    std::fill(to + r * stride + from.cols, to + r * stride + filled, T());
}

// The rows and columns of a tile of 16-bit elements that is copied beside its conversion: 4 KiB, so
// that it stays in the first cache.
inline constexpr std::int64_t kTileRows = 32, kTileColumns = 64;

// Calls run(rows, columns) for the tiles of a matrix.
template <class Run>
void for_each_tile(std::int64_t rows, std::int64_t cols, const Run& run) {
  for (std::int64_t r = 0; r < rows; r += kTileRows)
    for (std::int64_t c = 0; c < cols; c += kTileColumns)
      run(Range{r, std::min(r + kTileRows, rows)}, Range{c, std::min(c + kTileColumns, cols)});
}

// Does the same as copy_to_rows() with numbers of 16 bits, widened to floats.
template <class T>
  requires(!std::is_same_v<T, float>)
void copy_to_rows(MatrixView<const T> from, float* to, std::int64_t stride) {
  if (is_one_piece(from, stride)) return codelets::widen(from.data, from.rows * from.cols, to);
  if (from.rows_are_contiguous()) {
    for (std::int64_t r = 0; r < from.rows; ++r)
      codelets::widen(from.row(r), from.cols, to + r * stride);
    return;
  }
  std::array<T, kTileRows * kTileColumns> plain;
  for_each_tile(from.rows, from.cols, [&](Range rows, Range cols) {
    copy_to_rows<T>(from.sub(rows, cols), plain.data(), kTileColumns);
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      codelets::widen(plain.data() + (r - rows.begin) * kTileColumns, cols.size(),
                      to + r * stride + cols.begin);
  });
}

// Calls run(rows, memory for them as floats) for as many rows at a time as have that memory, whose
// numbers are converted together: each conversion of a short row would end between vectors.
template <class Run>
void for_short_rows(std::int64_t rows, std::int64_t cols, const Run& run) {
  std::array<float, 64 * kShortRow> wide;
  const std::int64_t together = std::ssize(wide) / std::max<std::int64_t>(cols, 1);
  for (std::int64_t r = 0; r < rows; r += together)
    run(Range{r, std::min(r + together, rows)}, std::span<float>(wide));
}

template <class T>
  requires(!std::is_same_v<T, float>)
void copy_filled_rows(MatrixView<const T> from, float* to, std::int64_t stride,
                      std::int64_t filled) {
  const bool is_short = from.cols < std::int64_t{kShortRow} && filled <= std::int64_t{kShortRow};
  if (is_short && !is_one_piece(from, stride) && is_one_piece(from, from.cols))
    return for_short_rows(from.rows, from.cols, [&](Range rows, std::span<float> wide) {
      const MatrixView<const float> part{wide.data(), rows.size(), from.cols, from.cols};
      codelets::widen(from.row(rows.begin), rows.size() * from.cols, wide.data());
      copy_filled_rows<float>(part, to + rows.begin * stride, stride, filled);
    });
  copy_to_rows(from, to, stride);
  for (std::int64_t r = 0; r < from.rows; ++r)
    std::fill(to + r * stride + from.cols, to + r * stride + filled, 0.0f);
}

// Sets row r of `to` to the row that begins at from + r * stride. The two must not overlap.
template <class T>
void copy_from_rows(const T* from, std::int64_t stride, MatrixView<T> to) {
  const std::int64_t count = to.rows * to.cols;
  if (is_one_piece(to, stride) && count > 0) {
    std::memcpy(to.data, from, std::size_t(count) * sizeof(T));
    return;
  }
  if (!to.rows_are_contiguous() && to.row_stride == 1)
    return codelets::transpose(from, stride, to.rows, to.cols, to.data, to.col_stride);
  if (to.rows_are_contiguous() && to.cols < std::int64_t{kShortRow})
    return with_short_row(to.cols, [&](auto columns) {
      for (std::int64_t r = 0; r < to.rows; ++r, from += stride)
        std::memcpy(to.row(r), from, columns * sizeof(T));
    });
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
  if (is_one_piece(to, stride)) return codelets::cast_floats(from, to.rows * to.cols, to.data);
  if (to.cols < std::int64_t{kShortRow} && is_one_piece(to, to.cols))
    return for_short_rows(to.rows, to.cols, [&](Range rows, std::span<float> wide) {
      const MatrixView<float> part{wide.data(), rows.size(), to.cols, to.cols};
      copy_from_rows<float>(from + rows.begin * stride, stride, part);
      codelets::cast_floats(wide.data(), rows.size() * to.cols, to.row(rows.begin));
    });
  if (to.rows_are_contiguous()) {
    for (std::int64_t r = 0; r < to.rows; ++r)
      codelets::cast_floats(from + r * stride, to.cols, to.row(r));
    return;
  }
  std::array<T, kTileRows * kTileColumns> rounded;
  for_each_tile(to.rows, to.cols, [&](Range rows, Range cols) {
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      codelets::cast_floats(from + r * stride + cols.begin, cols.size(),
                            rounded.data() + (r - rows.begin) * kTileColumns);
    copy_from_rows<T>(rounded.data(), kTileColumns, to.sub(rows, cols));
  });
}

}  // namespace tessera::host::internal
