#pragma once

#include <cstdint>

#include "tessera/base/block_shape.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// A [rows][cols] matrix with exactly round(density * block rows * block columns) blocks, every
// choice of that many places equally likely, and values of +1 or -1. The same arguments give the
// same matrix on every computer. `density` is blocks stored / all blocks, in [0, 1]. A density
// outside (NaN too), a size or block side below 1, and a size that is not a multiple of the block
// are Error{InvalidArgument}.
// With n blocks in P places: O(P) when P <= 16 * n, else O(n * log(n) + block rows).
// Example: random_pattern(1024, 1024, {4, 4}, 0.1, 7) stores 6554 of 65536 blocks.
Csr<float> random_pattern(std::int64_t rows, std::int64_t cols, BlockShape block, double density,
                          std::uint64_t seed);

// Sets every value of the matrix to +1 or -1, drawn from the seed in the order they are stored.
// `values` gets the size it should have, so a pattern may come without.
void fill_signs(Csr<float>& matrix, std::uint64_t seed);

}  // namespace tessera::sparse
