#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "tessera/base/block_shape.hpp"

namespace tessera::sparse {

// Returns the row pointers [lines + 1] of entries whose rows are given in ascending order. Throws
// Error{BadInput} if a row is outside 0..lines - 1 or out of order, or if `lines` is negative, and
// Error{LimitExceeded} for more than 2^31 - 1 lines. O(entries + lines).
// Example: rows 0 0 2 of 3 give 0 2 2 3.
std::vector<std::int64_t> compress_indices(std::span<const std::int64_t> rows, std::int64_t lines);

// Indices of another library. Signed 32 and 64 bits are legal; check() refuses the unsigned types.
using GivenIndices = std::variant<std::span<const std::int32_t>, std::span<const std::int64_t>,
                                  std::span<const std::uint32_t>, std::span<const std::uint64_t>>;

// CSR or BSR arrays in the layout of torch: batches of one size, and dense dimensions after the
// blocks. The object owns nothing. Spans are contiguous and in the memory of this process, so
// torch's rules about strides and devices always hold.
struct CompressedArrays {
  std::vector<std::int64_t> batch;         // [] for one matrix
  std::int64_t rows = 0, cols = 0;         // elements
  BlockShape block;                        // 1 x 1: CSR
  std::vector<std::int64_t> dense;         // [] for plain values
  GivenIndices crow_indices;               // [batch][rows / block.rows + 1]
  GivenIndices col_indices;                // [batch][nnz]
  std::vector<std::int64_t> values_shape;  // batch, nnz, the block unless 1 x 1, dense
};

// Throws Error{BadInput} with torch's message for the first of its invariants that does not hold:
// index types; shapes; pointers that start at 0, end at nnz and grow by 0..cols (in blocks) from
// row to row; columns that are inside the matrix and ascend strictly in a row. Throws
// Error{LimitExceeded} if indices have 32 bits and a size or nnz does not fit. O(nnz + rows); it
// allocates nothing for the indices.
void check(const CompressedArrays& arrays);

}  // namespace tessera::sparse
