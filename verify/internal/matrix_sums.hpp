#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/verify/internal/vector_sums.hpp"

namespace tessera::verify::internal {

// Weights of the rows of a matrix, and what the squares of their numbers are multiplied with.
struct RowWeights {
  const double* weights;  // [rows]
  const float* squares;   // [rows]
};

// Does add_columns for a matrix with any strides: rows with gaps between their numbers are copied,
// some at a time.
template <class T>
void add_matrix(MatrixView<const T> matrix, const RowWeights& by, double* sums, float* squares) {
  const auto add = [&](const T* first, std::int64_t stride, Range rows) {
    add_columns<T>(
        {first, rows.size(), matrix.cols, stride, by.weights + rows.begin, by.squares + rows.begin},
        sums, squares);
  };
  if (matrix.rows_are_contiguous()) return add(matrix.data, matrix.row_stride, {0, matrix.rows});
  constexpr std::int64_t kRows = 32;  // 8 KiB for a strip of 64 floats
  std::vector<T> copy(static_cast<std::size_t>(kRows * matrix.cols));
  for (std::int64_t begin = 0; begin < matrix.rows; begin += kRows) {
    const Range rows{begin, std::min(begin + kRows, matrix.rows)};
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t c = 0; c < matrix.cols; ++c)
        copy[static_cast<std::size_t>((r - begin) * matrix.cols + c)] = matrix(r, c);
    add(copy.data(), matrix.cols, rows);
  }
}

}  // namespace tessera::verify::internal
