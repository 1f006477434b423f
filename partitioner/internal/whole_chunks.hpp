#pragma once

#include <cstdint>

namespace tessera::partitioner::internal {

// How many of `count` items a loop should write where up to `room` may be written, because what is
// beyond them is overwritten later: whole vectors. Runs are short and of any length, and the odd
// items at their ends, one by one, cost as much as the rest.
constexpr std::int64_t whole_chunks(std::int64_t count, std::int64_t room) {
  constexpr std::int64_t kChunk = 16;  // a multiple of every vector the compiler takes
  const std::int64_t whole = (count + kChunk - 1) / kChunk * kChunk;
  return whole <= room ? whole : count;
}

}  // namespace tessera::partitioner::internal
