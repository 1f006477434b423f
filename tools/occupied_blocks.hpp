#pragma once

#include "tessera/base/block_shape.hpp"
#include "tessera/base/pattern_stats.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::tools {

// Returns a matrix with an element of 1 for each block that has a stored element of an element
// matrix; a block at the end of a side may be cut off. It says where in_whole_blocks() would store
// blocks and takes no memory for the values in them: 8 bytes a block. Throws Error{InvalidArgument}
// if `elements` has blocks. O(elements * log(elements of a row of blocks)).
sparse::Csr<float> occupied_blocks(const sparse::Csr<double>& elements, BlockShape block);

// Returns sparse::pattern_stats() of the matrix in whole blocks, from the places of its blocks.
PatternStats stats_in_blocks(const sparse::Csr<float>& occupied, BlockShape block);

}  // namespace tessera::tools
