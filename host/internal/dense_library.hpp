#pragma once

#include <cstdint>

// The dense product of a library, if one was built in (TESSERA_BLAS).
namespace tessera::host::internal {

// Returns "oneDNN", or nullptr if no library was built in and our own kernel does the work.
const char* dense_library();

// The product c [m][n] = a [m][k] * b [k][n], or a * transpose(b [n][k]), which is added to c if
// `adds` is true. lda, ldb and ldc are the distances of rows, in elements.
struct DenseProduct {
  std::int64_t m, n, k;
  const float* a;
  std::int64_t lda;
  const float* b;
  std::int64_t ldb;
  bool b_is_transposed;
  float* c;
  std::int64_t ldc;
  bool adds = false;
};

// Computes a product on the calling thread. dense_library() must not be null.
void multiply(const DenseProduct& product);

}  // namespace tessera::host::internal
