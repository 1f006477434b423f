#pragma once

#include <cstdint>

namespace tessera::arrays::internal {

// The operands of y[r] += alpha * sum over the entries of row r of value * x[column - first_col].
template <class T>
struct CsrProduct {
  std::int64_t rows;
  const std::int64_t *begin, *end;  // [rows] positions in values and columns
  const T* values;
  const std::int32_t* columns;
  std::int32_t first_col;
  const T* x;
  T* y;
  T alpha;
};

// Computes the product with vector instructions. The entries of a row are summed in sixteen lanes,
// entry k in lane k % 16, as long as there are sixteen left; then the lanes are added by halves,
// and the remaining entries are added in order. So the bits are the same on every instruction set.
// The kernel reads at about three quarters of the memory's rate (bench/results/formats.md); a
// single scalar sum per row waits for its additions and reaches 0.2.
void add_product(const CsrProduct<float>& product) noexcept;
void add_product(const CsrProduct<double>& product) noexcept;

// The reference kernel of add_product: it defines the bits.
template <class T>
void add_product_plainly(const CsrProduct<T>& p) {
  constexpr std::int64_t kLanes = 16;
  for (std::int64_t r = 0; r < p.rows; ++r) {
    T lanes[kLanes] = {};
    std::int64_t k = p.begin[r];
    for (; k + kLanes <= p.end[r]; k += kLanes)
      for (std::int64_t i = 0; i < kLanes; ++i)
        lanes[i] += p.values[k + i] * p.x[p.columns[k + i] - p.first_col];
    for (std::int64_t half = kLanes / 2; half > 0; half /= 2)
      for (std::int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    for (; k < p.end[r]; ++k) lanes[0] += p.values[k] * p.x[p.columns[k] - p.first_col];
    p.y[r] += p.alpha * lanes[0];
  }
}

// The operands of C += alpha * A * B for the same rows of A, with B [columns][n] and C [rows][n].
// Rows of B and C are contiguous.
template <class T>
struct CsrMatrixProduct {
  std::int64_t rows;
  const std::int64_t *begin, *end;  // [rows] positions in values and columns
  const T* values;
  const std::int32_t* columns;
  std::int64_t first_col;
  const T* b;
  std::int64_t b_stride;  // between rows, in elements
  T* c;
  std::int64_t c_stride, n;
  T alpha;
};

// Computes the product with vector instructions. Every element of C adds (alpha * value) * B in the
// order of the entries of its row, so the bits are the same on every instruction set. Four vectors
// of C stay in registers while a row is walked.
void add_matrix_product(const CsrMatrixProduct<float>& product) noexcept;
void add_matrix_product(const CsrMatrixProduct<double>& product) noexcept;

// The reference kernel of add_matrix_product: it defines the bits.
template <class T>
void add_matrix_product_plainly(const CsrMatrixProduct<T>& p) {
  for (std::int64_t r = 0; r < p.rows; ++r)
    for (std::int64_t k = p.begin[r]; k < p.end[r]; ++k) {
      const T factor = p.alpha * p.values[k];
      const T* from = p.b + (p.columns[k] - p.first_col) * p.b_stride;
      for (std::int64_t j = 0; j < p.n; ++j) p.c[r * p.c_stride + j] += factor * from[j];
    }
}

}  // namespace tessera::arrays::internal
