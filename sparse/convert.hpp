#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/pattern_stats.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// Conversions between the formats. Every function first checks its input by the rules of check.hpp
// (Error{BadInput}), returns a legal matrix, and shares no memory with its input. T and U are float
// or double; to_csr of a Coo and of a Csc, to_csc, transpose, to_dense and from_dense also take the
// other types of formats.hpp. Values are copied and never added or rounded, unless the comment says
// so. Any number of threads may convert one matrix. Costs count blocks, block rows and block
// columns; the values add blocks * area to each.
//
// The overloads for a CheckedCsr (checked.hpp) do the same without the check, and their results
// need no check either.

// The treatment of blocks that are given more than once.
enum class Duplicates {
  Refuse,  // Error{BadInput} that names both places
  Sum      // one block with the sum, added in the order in which they are given
};

// Returns the matrix as a Csr, which needs a sort. O(blocks + rows) if the blocks of each row are
// given in ascending order, at worst O(blocks * log(longest row) + rows). Element matrices of some
// thousand entries and more are sorted by digits instead, in O(blocks * bits of a coordinate / 8 +
// rows).
template <class T>
Csr<T> to_csr(const Coo<T>& matrix, Duplicates duplicates = Duplicates::Refuse);

// Convert between Csr and Csc with a counting sort. O(blocks + rows + cols).
template <class T>
Csr<T> to_csr(const Csc<T>& matrix);
template <class T>
Csc<T> to_csc(const Csr<T>& matrix);

// Returns the matrix as a Csc; the conversion makes a Csr first.
template <class T>
Csc<T> to_csc(const Coo<T>& matrix, Duplicates duplicates = Duplicates::Refuse);

// Return the matrix as a Coo that is sorted by row, then column. O(blocks + rows); a Csc is
// converted to a Csr first.
template <class T>
Coo<T> to_coo(const Csr<T>& matrix);
template <class T>
Coo<T> to_coo(const Csc<T>& matrix);

// Returns the transpose [cols][rows], with transposed blocks. It is a counting sort,
// O(blocks + rows + cols).
template <class T>
Csr<T> transpose(const Csr<T>& matrix);
template <class T>
CheckedCsr<T> transpose(const CheckedCsr<T>& matrix);

// Returns the position in the matrix of every value of its transpose: value i of transpose(matrix)
// is value order[i] of the matrix. New values of the same pattern are transposed by this order
// alone. Costs as much as transpose(). Example: {10, 20, 30} at (0, 0), (0, 1), (1, 0) becomes {10,
// 30, 20}; the order is {0, 2, 1}.
template <class T>
std::vector<std::int64_t> transpose_order(const Csr<T>& matrix);
template <class T>
std::vector<std::int64_t> transpose_order(const CheckedCsr<T>& matrix);

// Returns the same matrix with ascending columns in each row; the columns of the input may be in
// any order. O(blocks + rows) if they ascend already, at worst O(blocks * log(longest row) + rows).
template <class T>
Csr<T> sort_columns(const Csr<T>& matrix, Duplicates duplicates = Duplicates::Refuse);

// The treatment by with_block of a block of which only some parts are stored.
enum class Incomplete { FillZeros, Refuse };

// Returns the same matrix in other blocks. Each new side must divide the old side or be a multiple
// of it, and must divide the matrix (with_shape pads it), else Error{InvalidArgument} is thrown.
// Splitting stores every part of a stored block, zeros included. Merging stores a block if any part
// of it was stored and fills the rest with zeros; with Incomplete::Refuse a missing part is
// Error{BadInput}, which names the block. O(blocks + rows) plus the values of the result.
// Example: splitting one 2 x 2 block into elements and merging them again restores it.
template <class T>
Csr<T> with_block(const Csr<T>& matrix, BlockShape block,
                  Incomplete incomplete = Incomplete::FillZeros);
// The result shares the matrix if it has that block already.
template <class T>
CheckedCsr<T> with_block(const CheckedCsr<T>& matrix, BlockShape block,
                         Incomplete incomplete = Incomplete::FillZeros);

// Return the same for the other formats; the conversion makes a Csr first. The Coo is sorted by
// row, then column.
template <class T>
Csc<T> with_block(const Csc<T>& matrix, BlockShape block,
                  Incomplete incomplete = Incomplete::FillZeros);
template <class T>
Coo<T> with_block(const Coo<T>& matrix, BlockShape block,
                  Incomplete incomplete = Incomplete::FillZeros);

// Returns a matrix in which each stored element has become one block with its value in every place;
// rows and cols are multiplied by the sides of the block. Throws Error{InvalidArgument} unless the
// input is an element matrix and both sides are 1 or more, and Error{LimitExceeded} if a size does
// not fit in 64 bits. O(blocks + rows).
// Example: a 64 x 147 mask of blocks becomes a 512 x 1176 matrix in 8 x 8 blocks.
template <class T>
Csr<T> inflate(const Csr<T>& matrix, BlockShape block);

// Returns the same blocks in a larger matrix, with empty rows below and empty columns to the right.
// Throws Error{InvalidArgument} for smaller sizes and for sizes that are not a multiple of the
// block. O(blocks + rows).
template <class T>
Csr<T> with_shape(const Csr<T>& matrix, std::int64_t rows, std::int64_t cols);
// The result shares the matrix if it has that shape already.
template <class T>
CheckedCsr<T> with_shape(const CheckedCsr<T>& matrix, std::int64_t rows, std::int64_t cols);

// Returns the matrix with values of another type, rounded to nearest; values beyond the range of
// that type become infinite. O(blocks).
template <class U, class T>
Csr<U> cast(const Csr<T>& matrix);

// Returns the dense matrix [rows][cols], with zeros where nothing is stored. Throws
// Error{LimitExceeded} if rows * cols does not fit in 64 bits.
template <class T>
Matrix<T> to_dense(const Csr<T>& matrix);

// Returns a matrix of the blocks that contain a value other than zero (-0 is zero, NaN is not).
// Throws Error{InvalidArgument} if a side of the block is below 1 or does not divide the matrix.
// O(rows * cols).
template <class T>
Csr<T> from_dense(MatrixView<const T> matrix, BlockShape block);

// Returns the number of blocks in each block row and each block column, and their distribution over
// at most 256 x 256 bins. O(blocks + rows + cols).
template <class T>
PatternStats pattern_stats(const Csr<T>& matrix);
template <class T>
PatternStats pattern_stats(const CheckedCsr<T>& matrix);

}  // namespace tessera::sparse
