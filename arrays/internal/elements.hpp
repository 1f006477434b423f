#pragma once

#include "tessera/base/block_shape.hpp"
#include "tessera/sparse/check.hpp"

namespace tessera::arrays::internal {

// Error{InvalidArgument} with the remedy unless blocks are 1 x 1.
void require_element_block(BlockShape block);

// check(), and blocks of 1 x 1.
template <class M>
void require_elements(const M& matrix) {
  check(matrix);
  require_element_block(matrix.block);
}

}  // namespace tessera::arrays::internal
