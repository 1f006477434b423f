#pragma once

#include <cstdint>

#include "tessera/sparse/formats.hpp"

namespace tessera::train {

// Returns the fewest blocks with which each row and each column of blocks has `least` of them, or
// all that it can have. O(1).
std::int64_t blocks_for_least(std::int64_t block_rows, std::int64_t block_cols, std::int64_t least);

// Returns a pattern with as many blocks in which each row and each column of blocks has at least
// `least`, or all that it can have: short ones get random places, and random others go. A few
// blocks more are stored where rows and columns leave no choice. The values are 0. Throws
// Error{InvalidArgument} for a negative `least` and if the pattern has fewer than
// blocks_for_least(). The same arguments give the same pattern on every computer. O(blocks + short
// rows and columns * side).
sparse::Csr<float> with_least_per_neuron(const sparse::Csr<float>& pattern, std::int64_t least,
                                         std::uint64_t seed);

// Returns how many of the neurons between two layers are dead: `into` stores no weight in their
// row, so that their input is a bias at most, or `out_of` stores none in their column, so that
// nobody reads them. Parts of blocks beyond `neurons` do not count. O(blocks).
std::int64_t dead_neurons(const sparse::Csr<float>& into, const sparse::Csr<float>& out_of,
                          std::int64_t neurons);

}  // namespace tessera::train
