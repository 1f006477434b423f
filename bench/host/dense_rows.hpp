#pragma once

#include <cstdint>

#include "tessera/base/half.hpp"

namespace tessera::bench {

// Computes q[x] = sum over y of r[x][y] * s[y] for some rows of a dense bfloat16 matrix, four at a
// time: a plain loop that the compiler vectorises for this computer, which takes the time of
// reading the matrix.
void multiply_dense_rows(const BFloat16* r, std::int64_t rows, std::int64_t cols, const BFloat16* s,
                         float* q);

}  // namespace tessera::bench
