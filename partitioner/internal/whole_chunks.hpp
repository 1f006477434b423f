#pragma once

#include <cstdint>

namespace tessera::partitioner::internal {

// A multiple of the vector width of items of 32 and of 16 bits.
inline constexpr std::int32_t kChunk = 8;

// Calls write(i) for the items 0 .. count - 1, and for a few more up to a multiple of kChunk if
// `room` has space for them, because the surplus is overwritten later. Runs are short and of any
// length, and their last items, processed one by one, cost as much as the rest.
template <class Write>
void in_chunks(std::int32_t count, std::int64_t room, Write&& write) {
  if (((count + kChunk - 1) & -kChunk) > room) {
    for (std::int32_t i = 0; i < count; ++i) write(i);
    return;
  }
  for (std::int32_t first = 0; first < count; first += kChunk)
    for (std::int32_t i = 0; i < kChunk; ++i) write(first + i);
}

}  // namespace tessera::partitioner::internal
