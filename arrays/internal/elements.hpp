#pragma once

#include "tessera/base/block_shape.hpp"
#include "tessera/sparse/check.hpp"

namespace tessera::arrays::internal {

// Throws Error{InvalidArgument} with the remedy unless blocks are 1 x 1.
void require_element_block(BlockShape block);

// Throws the errors of check() and of require_element_block().
template <class M>
void require_elements(const M& matrix) {
  check(matrix);
  require_element_block(matrix.block);
}

}  // namespace tessera::arrays::internal
