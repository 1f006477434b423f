#pragma once

#include <new>

namespace tessera::test {

// These watch operator new of the whole program, on all threads.

// Returns the number of calls so far.
long allocations();

// Returns the sum of the bytes that all calls so far asked for.
long allocated_bytes();

// Starts counting the calls for exactly `bytes`, and returns their number since then.
void count_allocations_of(long bytes);
long allocations_of_that_size();

// Makes the `nth` call that may throw from now on, counted from 0, throw std::bad_alloc, once.
// Negative: none.
void fail_allocation(long nth);

// Returns true if the call that was to fail has failed, or if none was to fail.
bool allocation_failed();

// Calls `call` again and again, with another allocation of it failing each time, until none is left
// to fail. Calls check() after each failure, and returns the number of the first allocation that
// the call does not make. With a `stride` above 1, only every so many allocations fail.
template <class Call, class Check>
long fail_each_allocation(Call&& call, Check&& check, long stride = 1) {
  for (long nth = 0;; nth += stride) {
    try {
      fail_allocation(nth);
      call();
    } catch (const std::bad_alloc&) {
    }
    if (!allocation_failed()) {
      fail_allocation(-1);
      return nth;
    }
    check();
  }
}

}  // namespace tessera::test
