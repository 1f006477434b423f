#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/partitioner/buckets.hpp"

namespace tessera::partitioner::test {

// The words of a bucket up to and with its end marker, "1 0 0 3 | ..." without the bars.
std::vector<std::int64_t> forward_words(const Buckets& buckets, std::int64_t bucket);
std::vector<std::int64_t> grad_a_words(const Buckets& buckets, std::int64_t bucket);
// Numbers in a text; bars are passed over.
std::vector<std::int64_t> numbers(const std::string& text);

// Returns a fault in the buckets of `matrix`, or "". Reads the words as a codelet would and shares
// no code with the encoder: every block in exactly one slot and where its word says; every worker
// table covers every row and batch column (every block) exactly once; capacities kept; travel
// bounds exact; unused words 0.
std::string find_fault(const Buckets& buckets, const sparse::Csr<float>& matrix);

// Capacities large enough for every piece at home and every piece forced out.
TileGrid with_room(TileGrid grid, const sparse::Csr<float>& matrix);
// Capacities of a planner that expects the same number of blocks everywhere; slack 0.3 is 30 %.
TileGrid with_uniform_capacity(TileGrid grid, const sparse::Csr<float>& matrix, double slack);

}  // namespace tessera::partitioner::test
