#pragma once

namespace tessera::test {

// How often the whole program has called operator new so far, on all threads.
long allocations();

// From here on: how often it was called for exactly so many bytes.
void count_allocations_of(long bytes);
long allocations_of_that_size();

}  // namespace tessera::test
