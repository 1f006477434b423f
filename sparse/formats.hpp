#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "tessera/base/block_shape.hpp"

namespace tessera::sparse {

// The three storage formats, as plain values over T = float or double. A matrix of [rows][cols]
// elements is cut into blocks of `block`; only some blocks are stored, each whole, in one run of
// block.area() values. rows, cols and block count ELEMENTS; row, col and the positions in row_begin
// and col_begin count BLOCKS. An element matrix is one of 1 x 1 blocks. A stored value may be zero.
// Nothing is enforced here: check.hpp says what a legal matrix is. Two matrices are equal when all
// fields are, so NaN makes a matrix unequal to itself. Default values are legal: 0 x 0, no blocks.

// Blocks sorted by row, then column.
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

// Blocks sorted by column, then row; column-major inside a block: field by field it is the Csr of
// the transpose. Element (r, c) of a block lies at c * block.rows + r.
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

// Blocks in any order, each with its coordinates.
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

// One line: "CSR 4 x 6, blocks of 2 x 3, 2 blocks".
template <class T>
std::ostream& operator<<(std::ostream& out, const Csr<T>& matrix);
template <class T>
std::ostream& operator<<(std::ostream& out, const Csc<T>& matrix);
template <class T>
std::ostream& operator<<(std::ostream& out, const Coo<T>& matrix);

}  // namespace tessera::sparse
