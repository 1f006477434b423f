#pragma once

#include <cstdint>
#include <span>

#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// Throws Error{BadInput} unless the matrix is legal; the message names the array, the position, the
// block row and block column, the legal range and the remedy. T is float or double. Legal means:
//   1. block sides are at least 1 and their product fits in 64 bits
//   2. rows and cols are at least 0 and multiples of the block sides
//   3. there are at most 2^31 - 1 block rows and as many block columns
//   4. Csr, Csc: the pointer array has one entry per block row (column) and one more, starts at 0,
//      never descends, and ends at the number of blocks
//   5. Coo: as many row as column coordinates
//   6. every coordinate lies inside the matrix
//   7. Csr, Csc: coordinates ascend strictly inside a row (column); Coo: any order, no duplicates
//   8. there are blocks() * block.area() values; any value is legal, NaN and infinities too
// Cost O(blocks + block rows) for Csr, O(blocks + block columns) for Csc, and allocates nothing;
// for Coo O(blocks) when they are sorted by row and column, else O(blocks * log(blocks)) and 16
// bytes a block. Any number of threads may check one matrix.
template <class T>
void check(const Csr<T>& matrix);
template <class T>
void check(const Csc<T>& matrix);
template <class T>
void check(const Coo<T>& matrix);

// check() in two halves, for those who walk over the coordinates anyway and want to save a walk.
// Rules 1 to 4 and 8 of a Csr. O(block rows).
template <class T>
void check_all_but_columns(const Csr<T>& matrix);
// Do rules 6 and 7 hold in a block row of these block columns? check() words what is wrong.
bool is_legal_row(std::span<const std::int32_t> col, std::int64_t block_cols);

}  // namespace tessera::sparse
