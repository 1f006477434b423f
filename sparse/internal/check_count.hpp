#pragma once

#include <cstdint>

namespace tessera::sparse::internal {

// Counts the checks of matrices, or of all but their columns, in the whole program. For tests
// of paths on which a matrix shall be checked once.
std::int64_t checks_done();

}  // namespace tessera::sparse::internal
