#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "tessera/base/block_shape.hpp"

namespace tessera::sparse {

// The three storage formats, as plain values. T is float, double, Half, BFloat16, std::int32_t or
// std::int64_t. A matrix of [rows][cols] elements is cut into blocks of `block`. Only some of the
// blocks are stored; each stored block is complete and takes one run of block.area() values. rows,
// cols and block count ELEMENTS; row, col and the positions in row_begin and col_begin count
// BLOCKS. A matrix of 1 x 1 blocks is called an element matrix. A stored value may be zero. The
// types enforce no rules: check.hpp defines a legal matrix. Two matrices are equal if all fields
// are equal, so a matrix with a NaN is unequal to itself. A default matrix is legal: 0 x 0 without
// blocks.

// A matrix whose blocks are sorted by row, then column.
template <class T>
struct Csr {
  std::int64_t rows = 0, cols = 0;
  BlockShape block;
  std::vector<std::int64_t> row_begin = {0};  // [block_rows + 1] first position of each block row
  std::vector<std::int32_t> col;              // [blocks] block column, ascending in a block row
  std::vector<T> values;                      // [blocks][block.rows][block.cols], row-major

  std::int64_t blocks() const { return static_cast<std::int64_t>(col.size()); }
  std::int64_t block_rows() const { return rows / block.rows; }
  std::int64_t block_cols() const { return cols / block.cols; }
  friend bool operator==(const Csr&, const Csr&) = default;
};

// A matrix whose blocks are sorted by column, then row. The values of a block are column-major:
// element (r, c) of a block is stored at c * block.rows + r. So the fields equal, one by one, those
// of the Csr of the transpose.
template <class T>
struct Csc {
  std::int64_t rows = 0, cols = 0;
  BlockShape block;
  std::vector<std::int64_t> col_begin = {0};  // [block_cols + 1]
  std::vector<std::int32_t> row;              // [blocks] block row, ascending in a block column
  std::vector<T> values;                      // [blocks][block.cols][block.rows], column-major

  std::int64_t blocks() const { return static_cast<std::int64_t>(row.size()); }
  std::int64_t block_rows() const { return rows / block.rows; }
  std::int64_t block_cols() const { return cols / block.cols; }
  friend bool operator==(const Csc&, const Csc&) = default;
};

// A matrix whose blocks are in any order, each with its coordinates.
template <class T>
struct Coo {
  std::int64_t rows = 0, cols = 0;
  BlockShape block;
  std::vector<std::int32_t> row, col;  // [blocks] block coordinates
  std::vector<T> values;               // [blocks][block.rows][block.cols], row-major

  std::int64_t blocks() const { return static_cast<std::int64_t>(row.size()); }
  std::int64_t block_rows() const { return rows / block.rows; }
  std::int64_t block_cols() const { return cols / block.cols; }
  friend bool operator==(const Coo&, const Coo&) = default;
};

// Write a summary of one line, for example "CSR 4 x 6, blocks of 2 x 3, 2 blocks".
template <class T>
std::ostream& operator<<(std::ostream& out, const Csr<T>& matrix);
template <class T>
std::ostream& operator<<(std::ostream& out, const Csc<T>& matrix);
template <class T>
std::ostream& operator<<(std::ostream& out, const Coo<T>& matrix);

}  // namespace tessera::sparse
