#pragma once

namespace tessera::test {

// How often the whole program has called operator new so far, on all threads.
long allocations();

}  // namespace tessera::test
