#include "tessera/base/vector_targets.hpp"
// foreach_target reads this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/arrays/internal/csr_product.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before the header that depends on the target.
#include <hwy/highway.h>

#include <cstddef>

#include "tessera/arrays/internal/csr_product.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::arrays::internal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

constexpr std::int64_t kSums = 16;
// Vectors have at most 256 bits. With g++ 12 a 512-bit gather depends on the one before it, because
// it merges into the old content of its target register; that gives 0.6 of the rate.
template <class T>
using Tag = hn::CappedTag<T, 32 / sizeof(T)>;

HWY_INLINE auto columns_of(Tag<float> d, const std::int32_t* columns) {
  return hn::LoadU(hn::RebindToSigned<decltype(d)>(), columns);
}
HWY_INLINE auto columns_of(Tag<double> d, const std::int32_t* columns) {
  const hn::RebindToSigned<decltype(d)> wide;
  return hn::PromoteTo(wide, hn::LoadU(hn::Rebind<std::int32_t, decltype(wide)>(), columns));
}

// Values and columns are two streams that the hardware prefetcher follows too late. A prefetch 512
// entries ahead makes the loop 1.2 times (float) to 1.7 times (double) as fast. It targets the
// second-level cache, because the first level is full of x.
constexpr std::uintptr_t kAheadEntries = 512, kLine = 64;

template <class T>
HWY_INLINE void ask_ahead(const T* values, const std::int32_t* columns) {
  // The addresses are computed as numbers, because they may be past the end of the arrays. A
  // prefetch there is harmless.
  const auto line_at = [](std::uintptr_t byte) { return reinterpret_cast<const void*>(byte); };
  const std::uintptr_t ahead = reinterpret_cast<std::uintptr_t>(values) + kAheadEntries * sizeof(T);
  __builtin_prefetch(line_at(ahead), 0, 2);
  if (sizeof(T) > 4) __builtin_prefetch(line_at(ahead + kLine), 0, 2);
  __builtin_prefetch(line_at(reinterpret_cast<std::uintptr_t>(columns) + kAheadEntries * 4), 0, 2);
}

// Adds the upper half of the lanes to the lower half until one lane is left, and returns it.
template <class D, class V>
HWY_INLINE hn::TFromD<D> sum_of_halves(D d, V v) {
  if constexpr (hn::MaxLanes(D()) > 2) {
    const hn::Half<D> half;
    return sum_of_halves(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    hn::TFromD<D> lanes[2];
    hn::StoreU(v, d, lanes);
    return lanes[0] + lanes[1];
  }
}

template <class T>
HWY_INLINE void add_rows(const CsrProduct<T>& p) {
  const Tag<T> d;
  constexpr std::int64_t kStep = std::int64_t(hn::MaxLanes(d)), kVectors = kSums / kStep;
  const auto first = hn::Set(hn::RebindToSigned<decltype(d)>(), p.first_col);
  for (std::int64_t r = 0; r < p.rows; ++r) {
    hn::Vec<decltype(d)> sums[kVectors];
    for (auto& sum : sums) sum = hn::Zero(d);
    std::int64_t k = p.begin[r];
    for (; k + kSums <= p.end[r]; k += kSums) {
      ask_ahead(p.values + k, p.columns + k);
      for (std::int64_t v = 0; v < kVectors; ++v) {
        const auto column = hn::Sub(columns_of(d, p.columns + k + v * kStep), first);
        // MulAdd would be fused on some instruction sets only, and the bits would differ.
        sums[v] = hn::Add(sums[v], hn::Mul(hn::LoadU(d, p.values + k + v * kStep),
                                           hn::GatherIndex(d, p.x, column)));
      }
    }
    for (std::int64_t half = kVectors / 2; half > 0; half /= 2)
      for (std::int64_t v = 0; v < half; ++v) sums[v] = hn::Add(sums[v], sums[v + half]);
    T sum = sum_of_halves(d, sums[0]);
    for (; k < p.end[r]; ++k) sum += p.values[k] * p.x[p.columns[k] - p.first_col];
    p.y[r] += p.alpha * sum;
  }
}

// Adds the products of one row of A to `kVectors` vectors of C, from column j on.
template <int kVectors, class T>
HWY_INLINE void add_tile(const CsrMatrixProduct<T>& p, std::int64_t r, std::int64_t j) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = std::int64_t(hn::Lanes(d));
  T* to = p.c + r * p.c_stride + j;
  hn::Vec<decltype(d)> sums[kVectors];
  for (int v = 0; v < kVectors; ++v) sums[v] = hn::LoadU(d, to + v * lanes);
  for (std::int64_t k = p.begin[r]; k < p.end[r]; ++k) {
    const auto factor = hn::Set(d, p.alpha * p.values[k]);
    const T* from = p.b + (p.columns[k] - p.first_col) * p.b_stride + j;
    for (int v = 0; v < kVectors; ++v)
      sums[v] = hn::Add(sums[v], hn::Mul(factor, hn::LoadU(d, from + v * lanes)));
  }
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, to + v * lanes);
}

template <class T>
HWY_INLINE void add_matrix_rows(const CsrMatrixProduct<T>& p) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = std::int64_t(hn::Lanes(d));
  for (std::int64_t r = 0; r < p.rows; ++r) {
    std::int64_t j = 0;
    for (; j + 4 * lanes <= p.n; j += 4 * lanes) add_tile<4>(p, r, j);
    for (; j + lanes <= p.n; j += lanes) add_tile<1>(p, r, j);
    if (j == p.n) continue;
    for (std::int64_t k = p.begin[r]; k < p.end[r]; ++k) {
      const T factor = p.alpha * p.values[k];
      const T* from = p.b + (p.columns[k] - p.first_col) * p.b_stride;
      for (std::int64_t i = j; i < p.n; ++i) p.c[r * p.c_stride + i] += factor * from[i];
    }
  }
}

#else

template <class T>
void add_rows(const CsrProduct<T>& p) {
  add_product_plainly(p);
}
template <class T>
void add_matrix_rows(const CsrMatrixProduct<T>& p) {
  add_matrix_product_plainly(p);
}

#endif

void add_floats(const CsrProduct<float>& product) { add_rows(product); }
void add_doubles(const CsrProduct<double>& product) { add_rows(product); }
void add_float_rows(const CsrMatrixProduct<float>& product) { add_matrix_rows(product); }
void add_double_rows(const CsrMatrixProduct<double>& product) { add_matrix_rows(product); }

}  // namespace tessera::arrays::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::arrays::internal {

HWY_EXPORT(add_floats);
HWY_EXPORT(add_doubles);
HWY_EXPORT(add_float_rows);
HWY_EXPORT(add_double_rows);

void add_product(const CsrProduct<float>& product) noexcept {
  HWY_DYNAMIC_DISPATCH(add_floats)(product);
}
void add_product(const CsrProduct<double>& product) noexcept {
  HWY_DYNAMIC_DISPATCH(add_doubles)(product);
}
void add_matrix_product(const CsrMatrixProduct<float>& product) noexcept {
  HWY_DYNAMIC_DISPATCH(add_float_rows)(product);
}
void add_matrix_product(const CsrMatrixProduct<double>& product) noexcept {
  HWY_DYNAMIC_DISPATCH(add_double_rows)(product);
}

}  // namespace tessera::arrays::internal
#endif
