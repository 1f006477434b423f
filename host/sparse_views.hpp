#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/block_shape.hpp"

// Sparse matrices in the caller's memory, as SciPy, PyTorch and other libraries keep them. All are
// plain values that refer to the arrays; nothing is copied. T is float, Half or BFloat16; Index is
// std::int32_t or std::int64_t, and Position is Index or std::int64_t, as in sparse::Csr. Places
// may be in any order, and values at one place are added up.
namespace tessera::host {

// A matrix in compressed rows: the arrays of SciPy's csr_matrix and bsr_matrix and of PyTorch's
// sparse_csr and sparse_bsr tensors.
template <class T, class Index = std::int32_t, class Position = Index>
struct CompressedRows {
  std::int64_t rows = 0, cols = 0;  // elements; whole blocks
  BlockShape block = {1, 1};
  std::span<const Position> row_begin;  // [block rows + 1] positions in `col`
  std::span<const Index> col;           // [places] block columns
  std::span<const T> values;            // [places][block.rows][block.cols]
};

// A matrix in compressed columns: the arrays of SciPy's csc_matrix and PyTorch's sparse_csc. With
// the arrays of a CompressedRows without blocks it is the transpose of that matrix.
template <class T, class Index = std::int32_t, class Position = Index>
struct CompressedColumns {
  std::int64_t rows = 0, cols = 0;
  std::span<const Position> col_begin;  // [cols + 1] positions in `row`
  std::span<const Index> row;           // [places]
  std::span<const T> values;            // [places]
};

// A matrix as a list of places: the arrays of SciPy's coo_matrix and PyTorch's sparse_coo.
template <class T, class Index = std::int32_t>
struct Coordinates {
  std::int64_t rows = 0, cols = 0;
  std::span<const Index> row, col;  // [places]
  std::span<const T> values;        // [places]
};

}  // namespace tessera::host
