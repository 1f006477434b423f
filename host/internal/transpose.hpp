#pragma once

#include <cstdint>
#include <vector>

#include "tessera/sparse/formats.hpp"

namespace tessera::host::internal {

// The pattern of the transpose of a matrix, with the number that each of its blocks has there.
struct TransposedPattern {
  sparse::Csr<float> matrix;           // values are 0
  std::vector<std::int32_t> block_of;  // [blocks of the transpose] number in the matrix
};

// Returns the transposed pattern of a checked matrix, whose values are not read. One counting sort
// by column, in 32 bits.
TransposedPattern transposed_pattern(const sparse::Csr<float>& matrix);

}  // namespace tessera::host::internal
