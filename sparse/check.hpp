#pragma once

#include <cstdint>
#include <span>

#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// Throws Error{BadInput} unless the matrix is legal. The message names the array, the position, the
// block row and block column, the legal range and the remedy. A matrix is legal if:
//   1. block sides are at least 1 and their product fits in 64 bits
//   2. rows and cols are at least 0 and multiples of the block sides
//   3. there are at most 2^31 - 1 block rows and as many block columns
//   4. Csr, Csc: the pointer array has one entry per block row (column) and one more, starts at 0,
//      never descends, and ends at the number of blocks
//   5. Coo: there are as many row as column coordinates
//   6. every coordinate is inside the matrix
//   7. Csr, Csc: coordinates ascend strictly inside a row (column); Coo: any order, no duplicates
//   8. there are blocks() * block.area() values; any value is legal, NaN and infinities too
// Cost: O(blocks + block rows) for a Csr and O(blocks + block columns) for a Csc, without any
// allocation. For a Coo it is O(blocks) if the blocks are sorted by row and column, else
// O(blocks * log(blocks)) with 16 bytes per block. Any number of threads may check one matrix.
template <class T>
void check(const Csr<T>& matrix);
template <class T>
void check(const Csc<T>& matrix);
template <class T>
void check(const Coo<T>& matrix);

// Throws Error{BadInput} unless rules 1 to 4 and 8 hold for the Csr. Together with is_legal_row for
// each row it replaces check() in callers that walk over the coordinates anyway. O(block rows).
template <class T>
void check_all_but_columns(const Csr<T>& matrix);

// Returns true if rules 6 and 7 hold for a block row with these block columns. If it returns false,
// check() throws the error that describes the fault. O(col.size()).
bool is_legal_row(std::span<const std::int32_t> col, std::int64_t block_cols);

}  // namespace tessera::sparse
