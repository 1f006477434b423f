#pragma once

namespace tessera::inline v0::test {

// How often the whole program has called operator new so far, on all threads.
long allocations();

}  // namespace tessera::inline v0::test
