#pragma once

#include <cstdint>

namespace tessera::sparse::internal {

// How often the whole program has checked a matrix, or all of it but its columns, so far. For tests
// of paths on which a matrix shall be checked once.
std::int64_t checks_done();

}  // namespace tessera::sparse::internal
