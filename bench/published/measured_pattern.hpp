#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// Shuffles the numbers 0 .. count - 1 as std::shuffle of libstdc++ 12 does for a
// std::vector<unsigned> and a std::default_random_engine with that seed: a minimal standard
// generator (multiplier 16807) and rejection of numbers beyond the last whole multiple. `count` is
// at most 2^31 - 2. O(count).
std::vector<std::uint32_t> libstdcxx_shuffle(std::uint32_t count, std::uint32_t seed);

// Returns the matrix [side][side] that the program behind the published figures
// (sparsity-benchmarks, ipu/matmul_bench.cpp) draws: it shuffles all block places, in row-major
// order, with seed 123 and takes the first ceil(density * places), where the density is a float.
// All values are 1. `side` is a multiple of the block, and there are at most 2^31 - 2 places.
sparse::Csr<float> measured_pattern(std::int64_t side, BlockShape block, double density);

}  // namespace tessera::bench
