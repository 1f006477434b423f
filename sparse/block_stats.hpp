#pragma once

#include "tessera/base/block_shape.hpp"
#include "tessera/base/pattern_stats.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// Returns pattern_stats() of an element matrix in whole blocks, as with_block() would store it; a
// block at the end of a side may be cut off. The blocks are counted and not stored: 8 bytes for
// each column of blocks. Throws Error{InvalidArgument} if `elements` has blocks, and the errors of
// check(). O(elements).
template <class T>
PatternStats stats_in_blocks(const Csr<T>& elements, BlockShape block);

}  // namespace tessera::sparse
