#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::device::internal {

// Returns the sum of the words of 64 bits of a run of bytes, modulo 2^64; missing bytes of the last
// word count as zeros. The words are those of this computer's byte order, so a sum is for this
// process only. Reads with the widest vectors that the processor has.
std::uint64_t sum_of_words(const std::byte* data, std::int64_t bytes);

}  // namespace tessera::device::internal
