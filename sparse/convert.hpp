#pragma once

#include <cstdint>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/pattern_stats.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// Every function checks its input by the rules of check.hpp first (Error{BadInput}), gives a legal
// matrix back, and shares nothing with its input. T and U are float or double. Values are moved,
// never added or rounded, unless said. Any number of threads may convert one matrix.
// Costs count blocks, block rows and block columns; the values add blocks * area to each.

// What to do about blocks that are given more than once.
enum class Duplicates {
  Refuse,  // Error{BadInput} that names both places
  Sum      // one block with the sum, added in the order in which they are given
};

// Sorts. O(blocks + rows) when the blocks of each row come in ascending order, at worst O(blocks *
// log(longest row) + rows).
template <class T>
Csr<T> to_csr(const Coo<T>& matrix, Duplicates duplicates = Duplicates::Refuse);
// Counting sorts, O(blocks + rows + cols).
template <class T>
Csr<T> to_csr(const Csc<T>& matrix);
template <class T>
Csc<T> to_csc(const Csr<T>& matrix);
// By way of a Csr.
template <class T>
Csc<T> to_csc(const Coo<T>& matrix, Duplicates duplicates = Duplicates::Refuse);
// Sorted by row, then column. O(blocks + rows).
template <class T>
Coo<T> to_coo(const Csr<T>& matrix);
template <class T>
Coo<T> to_coo(const Csc<T>& matrix);

// [cols][rows], blocks transposed too. A counting sort, O(blocks + rows + cols).
template <class T>
Csr<T> transpose(const Csr<T>& matrix);

// The same matrix with ascending columns in each row, from any order. Cost as to_csr of a Coo.
template <class T>
Csr<T> sort_columns(const Csr<T>& matrix, Duplicates duplicates = Duplicates::Refuse);

// What with_block does about a block of which only a part was stored.
enum class Incomplete { FillZeros, Refuse };

// The same matrix in other blocks. Each side must divide the old side or be a multiple of it, and
// must divide the matrix (with_shape pads it), else Error{InvalidArgument}. Splitting stores every
// part of a stored block, zeros included. Merging stores a block when any part of it was stored and
// fills the rest with zeros; with Incomplete::Refuse, a missing part is Error{BadInput} that names
// the block. O(blocks + rows) plus the values of the result.
// Example: splitting one 2 x 2 block into elements and merging them again gives it back.
template <class T>
Csr<T> with_block(const Csr<T>& matrix, BlockShape block,
                  Incomplete incomplete = Incomplete::FillZeros);
// The same for the other formats, by way of a Csr; a Coo comes back sorted by row, then column.
template <class T>
Csc<T> with_block(const Csc<T>& matrix, BlockShape block,
                  Incomplete incomplete = Incomplete::FillZeros);
template <class T>
Coo<T> with_block(const Coo<T>& matrix, BlockShape block,
                  Incomplete incomplete = Incomplete::FillZeros);

// Each stored element becomes one dense block that holds its value everywhere: rows and cols grow
// by the sides of the block. For an element matrix, else Error{InvalidArgument}; a size that leaves
// 64 bits is Error{LimitExceeded}. O(blocks + rows).
// Example: a 64 x 147 mask of blocks becomes a 512 x 1176 matrix in 8 x 8 blocks.
template <class T>
Csr<T> inflate(const Csr<T>& matrix, BlockShape block);

// The same blocks in a larger matrix: empty rows below, empty columns to the right. Smaller sizes,
// or sizes that are not a multiple of the block, are Error{InvalidArgument}. O(blocks + rows).
template <class T>
Csr<T> with_shape(const Csr<T>& matrix, std::int64_t rows, std::int64_t cols);

// Values in another type, rounded to nearest; beyond its range they become infinite. O(blocks).
template <class U, class T>
Csr<U> cast(const Csr<T>& matrix);

// [rows][cols], zero where nothing is stored. Error{LimitExceeded} when rows * cols leaves 64 bits.
template <class T>
Matrix<T> to_dense(const Csr<T>& matrix);

// Stores the blocks that hold anything but zero (-0 is zero, NaN is not). Error{InvalidArgument}
// when a side of the block is below 1 or does not divide the matrix. O(rows * cols).
template <class T>
Csr<T> from_dense(MatrixView<const T> matrix, BlockShape block);

// Blocks in each block row and block column. O(blocks + rows + cols).
template <class T>
PatternStats pattern_stats(const Csr<T>& matrix);

}  // namespace tessera::sparse
