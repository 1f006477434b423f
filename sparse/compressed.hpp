#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "tessera/base/block_shape.hpp"

namespace tessera::sparse {

// Begins of `lines` rows from the row of each entry, ascending: [lines + 1]. A row outside
// 0..lines - 1 or out of order is Error{BadInput}, more than 2^31 - 1 lines Error{LimitExceeded}.
// O(entries + lines).
// Example: rows 0 0 2 of 3 give 0 2 2 3.
std::vector<std::int64_t> compress_indices(std::span<const std::int64_t> rows, std::int64_t lines);

// Indices as they come from elsewhere. Signed 32 and 64 bits are legal.
using GivenIndices = std::variant<std::span<const std::int32_t>, std::span<const std::int64_t>,
                                  std::span<const std::uint32_t>, std::span<const std::uint64_t>>;

// CSR or BSR arrays in the layout of torch, not owned: batches of one size, dense dimensions behind
// the blocks. Spans are contiguous and in this memory, so rules about strides and devices hold.
struct CompressedArrays {
  std::vector<std::int64_t> batch;         // [] for one matrix
  std::int64_t rows = 0, cols = 0;         // elements
  BlockShape block;                        // 1 x 1: CSR
  std::vector<std::int64_t> dense;         // [] for plain values
  GivenIndices crow_indices;               // [batch][rows / block.rows + 1]
  GivenIndices col_indices;                // [batch][nnz]
  std::vector<std::int64_t> values_shape;  // batch, nnz, the block unless 1 x 1, dense
};

// Error{BadInput} with torch's message for the first of its invariants that does not hold: index
// types, shapes, pointers that start at 0, end at nnz and step by 0..cols, columns inside the
// matrix that ascend strictly in a row. Numbers that leave 32 bits where indices have 32 are
// Error{LimitExceeded}. O(nnz + rows), allocates nothing for the indices.
void check(const CompressedArrays& arrays);

}  // namespace tessera::sparse
