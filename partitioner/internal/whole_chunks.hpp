#pragma once

#include <cstdint>

namespace tessera::partitioner::internal {

// A multiple of every vector width that the compiler uses.
inline constexpr std::int64_t kChunk = 16;

// Returns how many items a loop should write to process `count` items in whole vectors. Up to
// `room` items may be written, because the surplus is overwritten later. Runs are short and of any
// length, and their last items, processed one by one, cost as much as the rest.
constexpr std::int64_t whole_chunks(std::int64_t count, std::int64_t room) {
  const std::int64_t whole = (count + kChunk - 1) / kChunk * kChunk;
  return whole <= room ? whole : count;
}

}  // namespace tessera::partitioner::internal
