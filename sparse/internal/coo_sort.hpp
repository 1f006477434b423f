#pragma once

#include "tessera/sparse/formats.hpp"

namespace tessera::sparse::internal {

// The number of entries from which sort_to_csr is worth its buffers.
inline constexpr std::int64_t kLeastToRadixSort = 4096;

// Sets `result` to the Csr of an element matrix whose coordinates are inside the matrix. Entries of
// one place become neighbours in the order in which they were given. Returns true if there are such
// duplicates.
// The entries are first scattered by the leading bits of the row into parts that fit the
// second-level cache; then each part is radix-sorted by row and column. bench/results/formats.md
// has the rate on 16 million shuffled entries; long rows are no slower. O(entries * bits of a
// coordinate / 8 + rows), with one more copy of the entries during the sort.
template <class T>
bool sort_to_csr(const Coo<T>& matrix, Csr<T>& result);

}  // namespace tessera::sparse::internal
