// foreach_target reads this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/sparse/tensor/internal/csr_product.cpp"
#include <hwy/foreach_target.h>
// First the list of targets, then what depends on the target.
#include <hwy/highway.h>

#include <cstddef>

#include "tessera/sparse/tensor/internal/csr_product.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::sparse::internal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

constexpr std::int64_t kSums = 16;

HWY_INLINE auto columns_of(hn::CappedTag<float, 16> d, const std::int32_t* columns) {
  return hn::LoadU(hn::RebindToSigned<decltype(d)>(), columns);
}
HWY_INLINE auto columns_of(hn::CappedTag<double, 16> d, const std::int32_t* columns) {
  const hn::RebindToSigned<decltype(d)> wide;
  return hn::PromoteTo(wide, hn::LoadU(hn::Rebind<std::int32_t, decltype(wide)>(), columns));
}

// Values and columns lie in two streams that the hardware follows too late: asked for 3 KiB of each
// ahead into the second-level cache they come half again as fast as without (float), or into the
// first-level cache.
constexpr std::int64_t kAheadBytes = 3072, kLine = 64;

template <class T>
HWY_INLINE void ask_ahead(const T* values, const std::int32_t* columns) {
  const auto fetch = [](const void* memory) { __builtin_prefetch(memory, 0, 2); };
  for (std::int64_t byte = 0; byte < kSums * std::int64_t(sizeof(T)); byte += kLine)
    fetch(reinterpret_cast<const char*>(values) + kAheadBytes * std::int64_t(sizeof(T)) / 4 + byte);
  fetch(reinterpret_cast<const char*>(columns) + kAheadBytes);
}

template <class T>
HWY_INLINE void add_rows(const CsrProduct<T>& p) {
  const hn::CappedTag<T, 16> d;
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
        // Not MulAdd: fused on some instruction sets, not on others.
        sums[v] = hn::Add(sums[v], hn::Mul(hn::LoadU(d, p.values + k + v * kStep),
                                           hn::GatherIndex(d, p.x, column)));
      }
    }
    T lanes[kSums];
    for (std::int64_t v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, lanes + v * kStep);
    for (std::int64_t half = kSums / 2; half > 0; half /= 2)
      for (std::int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    for (; k < p.end[r]; ++k) lanes[0] += p.values[k] * p.x[p.columns[k] - p.first_col];
    p.y[r] += p.alpha * lanes[0];
  }
}

#else

template <class T>
void add_rows(const CsrProduct<T>& p) {
  add_product_plainly(p);
}

#endif

void add_floats(const CsrProduct<float>& product) { add_rows(product); }
void add_doubles(const CsrProduct<double>& product) { add_rows(product); }

}  // namespace tessera::sparse::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::sparse::internal {

HWY_EXPORT(add_floats);
HWY_EXPORT(add_doubles);

void add_product(const CsrProduct<float>& product) noexcept {
  HWY_DYNAMIC_DISPATCH(add_floats)(product);
}
void add_product(const CsrProduct<double>& product) noexcept {
  HWY_DYNAMIC_DISPATCH(add_doubles)(product);
}

}  // namespace tessera::sparse::internal
#endif
