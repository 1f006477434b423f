#pragma once

#include <cstdint>

#include "tessera/base/matrix.hpp"
#include "tessera/base/random.hpp"

namespace tessera {

// Returns a matrix [rows][cols] of random values in [-1, 1), rounded to T, which is float, Half or
// BFloat16. A seed gives the same matrix on every computer. O(rows * cols); thread-safe.
template <class T>
Matrix<T> random_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Random random(seed);
  Matrix<T> matrix(rows, cols);
  for (T& v : matrix.elements()) v = T(float(2 * random.unit() - 1));
  return matrix;
}

}  // namespace tessera
