#pragma once

#include <cstdint>

#include "tessera/base/block_shape.hpp"

namespace tessera::sparse::internal {

// Throws Error{InvalidArgument} for sizes, blocks and densities that no random matrix can have.
void check_drawing(std::int64_t rows, std::int64_t cols, BlockShape block, double density);

}  // namespace tessera::sparse::internal
