#pragma once

#include "tessera/sparse/formats.hpp"

namespace tessera::sparse::internal {

// From here on sort_to_csr is worth its buffers.
inline constexpr std::int64_t kLeastToRadixSort = 4096;

// The Csr of an element matrix whose coordinates lie inside it, entries of one place next to each
// other in the order in which they were given. Answers whether there are such twins.
// First a scatter by the leading bits of the row into parts that fit the second-level cache, then
// a radix sort of each by row and column: see bench/results/formats.md for the rate on 16 million
// shuffled entries; no slower for long rows. O(entries * bits of a coordinate / 8 + rows), one
// more copy of the entries meanwhile.
template <class T>
bool sort_to_csr(const Coo<T>& matrix, Csr<T>& result);

}  // namespace tessera::sparse::internal
