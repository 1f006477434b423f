// The loops of half_sums.hpp for every instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/half_sums.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include <algorithm>
#include <array>

#include "tessera/codelets/internal/arithmetic.hpp"
#include "tessera/codelets/internal/fast/half_sums.hpp"
#include "tessera/codelets/internal/fast/lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
// Lanes that fit the fixed number of sums of a dot product.
constexpr std::size_t kHalfLanes =
    kNativeLanes < std::size_t(kSumLanes) ? kNativeLanes : std::size_t(kSumLanes);
using HalfVector = hn::Vec<HalfBits<kHalfLanes>>;

HWY_INLINE HalfVector load_halves(const Half* from) {
  return hn::LoadU(HalfBits<kHalfLanes>(), reinterpret_cast<const std::uint16_t*>(from));
}
HWY_INLINE void store_halves(HalfVector halves, Half* to) {
  hn::StoreU(halves, HalfBits<kHalfLanes>(), reinterpret_cast<std::uint16_t*>(to));
}
HWY_INLINE HalfVector rounded(FloatVector<kHalfLanes> floats) {
  const hn::Rebind<hwy::float16_t, Floats<kHalfLanes>> d16;
  return hn::BitCast(HalfBits<kHalfLanes>(), hn::DemoteTo(d16, floats));
}
HWY_INLINE FloatVector<kHalfLanes> wide(HalfVector halves) { return to_floats<kHalfLanes>(halves); }
HWY_INLINE HalfVector add_rounded(HalfVector sum, FloatVector<kHalfLanes> a,
                                  FloatVector<kHalfLanes> b) {
  return rounded(hn::Add(wide(sum), wide(rounded(hn::Mul(a, b)))));
}

void add_row(Half* out, Half r, const Half* in, std::int64_t count) {
  constexpr auto kStep = static_cast<std::int64_t>(kHalfLanes);
  const auto factor = hn::Set(Floats<kHalfLanes>(), to_float(r));
  std::int64_t z = 0;
  for (; z + kStep <= count; z += kStep)
    store_halves(add_rounded(load_halves(out + z), factor, wide(load_halves(in + z))), out + z);
  add_scaled_row(out + z, r, in + z, count - z);
}

Half dot_row(const Half* a, const Half* b, std::int64_t count) {
  constexpr auto kStep = static_cast<std::int64_t>(kHalfLanes);
  constexpr std::size_t kVectors = std::size_t(kSumLanes) / kHalfLanes;
  std::array<Half, kSumLanes> lanes{};
  HalfVector sums[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) sums[v] = hn::Zero(HalfBits<kHalfLanes>());
  std::int64_t z = 0;
  for (; z + kSumLanes <= count; z += kSumLanes)
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::int64_t at = z + std::int64_t(v) * kStep;
      sums[v] = add_rounded(sums[v], wide(load_halves(a + at)), wide(load_halves(b + at)));
    }
  for (std::size_t v = 0; v < kVectors; ++v) store_halves(sums[v], &lanes[v * kHalfLanes]);
  for (std::int64_t i = 0; z + i < count; ++i)
    lanes[std::size_t(i)] = add_product(lanes[std::size_t(i)], a[z + i], b[z + i]);
  return add(add_lanes(lanes), Half());
}
#else
void add_row(Half* out, Half r, const Half* in, std::int64_t count) {
  add_scaled_row(out, r, in, count);
}
Half dot_row(const Half* a, const Half* b, std::int64_t count) { return dot<Half>(a, b, count); }
#endif

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets::internal {
HWY_EXPORT(add_row);
HWY_EXPORT(dot_row);

void add_scaled_half_row(Half* out, Half r, const Half* in, std::int64_t count) noexcept {
  HWY_DYNAMIC_DISPATCH(add_row)(out, r, in, count);
}

Half half_dot(const Half* a, const Half* b, std::int64_t count) noexcept {
  return HWY_DYNAMIC_DISPATCH(dot_row)(a, b, count);
}

}  // namespace tessera::codelets::internal
#endif
