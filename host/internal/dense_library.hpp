#pragma once

#include <cstdint>

// The dense product of a library, where one was built in (TESSERA_BLAS).
namespace tessera::host::internal {

// "oneDNN", or nullptr where our own kernel does the work.
const char* dense_library();

// c [m][n] = a [m][k] * b [k][n], or * transpose(b [n][k]); rows lie lda, ldb and ldc apart. On the
// calling thread alone. Only where dense_library() names one.
struct DenseProduct {
  std::int64_t m, n, k;
  const float* a;
  std::int64_t lda;
  const float* b;
  std::int64_t ldb;
  bool b_is_turned;
  float* c;
  std::int64_t ldc;
};
void multiply(const DenseProduct& product);

}  // namespace tessera::host::internal
