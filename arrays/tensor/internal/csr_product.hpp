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

}  // namespace tessera::arrays::internal
