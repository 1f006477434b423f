#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// Returns a random matrix [rows][cols] with exactly round(density * block rows * block columns)
// blocks and values of +1 or -1. Every choice of that many places is equally likely. The same
// arguments give the same matrix on every computer. `density` is stored blocks / all blocks, in
// [0, 1]. Throws Error{InvalidArgument} for a density outside that range (NaN too), for a size or
// block side below 1, and for a size that is not a multiple of the block.
// Cost with n blocks in P places: O(P) if P <= 1024 * n, else O(n * log(n) + block rows).
// Example: random_pattern(1024, 1024, {4, 4}, 0.1, 7) stores 6554 of 65536 blocks.
Csr<float> random_pattern(std::int64_t rows, std::int64_t cols, BlockShape block, double density,
                          std::uint64_t seed);

// Returns `count` different numbers in [0, places), ascending; every choice is equally likely, and
// the same arguments give the same numbers on every computer. They are the places of the blocks of
// random_pattern. Throws Error{InvalidArgument} unless count is in [0, places]. Costs as
// random_pattern.
std::vector<std::int64_t> random_choice(std::int64_t places, std::int64_t count,
                                        std::uint64_t seed);

// Sets every value of the matrix to +1 or -1, drawn from the seed in storage order. `values` is
// resized to blocks() * block.area() first, so a pattern without values may be passed. Some rows of
// a matrix get the values that they have in the whole one if `first` values stand before them;
// these are drawn too, and passed over.
void fill_signs(Csr<float>& matrix, std::uint64_t seed, std::int64_t first = 0);

}  // namespace tessera::sparse
