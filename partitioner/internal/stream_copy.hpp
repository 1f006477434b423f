#pragma once

#include <cstdint>

namespace tessera::partitioner::internal {

// These functions copy or clear memory with non-temporal stores, which bypass the caches. They are
// for storage so large that it would be evicted before it is read: a cache line that is only
// written need not be fetched first. All of a list must be written like this; a mixture (streamed
// blocks and stored padding, or the reverse) takes twice as long.
constexpr std::int64_t kStreamGrain = 16;  // bytes; `to` and `bytes` below must be multiples of it

// The size in bytes from which streaming is used. Measured while other programs used the last cache
// too: 16 x 16 blocks of half into 5 MB run at 34 million/s streamed, and at 50 through the caches;
// of float into 10 MB at 16 to 19 streamed, and at 12 to 14 through the caches.
constexpr std::int64_t kStreamFrom = std::int64_t{8} << 20;

void stream_copy(const void* from, void* to, std::int64_t bytes);
void stream_zeros(void* to, std::int64_t bytes);

// Call this before another thread reads what this thread has streamed. Some hundred cycles.
void finish_streams();

}  // namespace tessera::partitioner::internal
