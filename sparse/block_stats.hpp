#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/pattern_stats.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// Returns pattern_stats() of an element matrix in whole blocks, as with_block() would store it; a
// block at the end of a side may be cut off. The blocks are counted and not stored: 8 bytes for
// each column of blocks. Throws Error{InvalidArgument} if `elements` has blocks, and the errors of
// check(). O(elements).
template <class T>
PatternStats stats_in_blocks(const Csr<T>& elements, BlockShape block);

// Returns pattern_stats() of the matrices of several groups on the diagonal of one matrix. All have
// the same block. Throws Error{InvalidArgument} if there is none. O(blocks + rows + cols).
PatternStats stats_of_groups(std::span<const CheckedCsr<float>> matrices);

// Returns the number of block rows that have no block. O(rows).
std::int64_t empty_block_rows(const Csr<float>& matrix);

}  // namespace tessera::sparse
