#pragma once

#include "tessera/tests/runtime/counted_allocations.hpp"

namespace tessera::test {

// Makes the `nth` call of operator new from now on, counted from 0, throw std::bad_alloc, once.
// Negative: none.
void fail_allocation(long nth);

}  // namespace tessera::test
