#pragma once

#include <cstdint>

namespace tessera::partitioner::internal {

// Copies and zeros that go past the caches, into storage so large that it would be thrown out of
// them before it is read: a line that is only written need not be fetched first. All of a list must
// go this way: with copies streamed and padding stored, or the reverse, it takes twice as long.
constexpr std::int64_t kStreamGrain = 16;  // bytes: of `to` and `bytes` below

// From how many bytes on. Measured where others use the last cache too: 16 x 16 blocks of half into
// 5 MB run at 34 million/s, and at 50 by way of the caches; of float into 10 MB at 16 to 19, and at
// 12 to 14.
constexpr std::int64_t kStreamFrom = std::int64_t{8} << 20;

void stream_copy(const void* from, void* to, std::int64_t bytes);
void stream_zeros(void* to, std::int64_t bytes);
// Before another thread may read what this one has streamed. Some hundred cycles.
void finish_streams();

}  // namespace tessera::partitioner::internal
