// cast_floats() and widen() for every instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/casts.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include "tessera/codelets/cast.hpp"
#include "tessera/codelets/internal/fast/lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
HWY_INLINE void cast_vector(const float* from, Half* to) {
  const hn::Rebind<hwy::float16_t, Floats<kNativeLanes>> d16;
  const auto halves = hn::DemoteTo(d16, load_lanes<kNativeLanes>(from));
  hn::StoreU(hn::BitCast(HalfBits<kNativeLanes>(), halves), HalfBits<kNativeLanes>(),
             reinterpret_cast<std::uint16_t*>(to));
}
#else
HWY_INLINE void cast_vector(const float* from, Half* to) {
  for (std::size_t i = 0; i < kNativeLanes; ++i) to[i] = Half(from[i]);
}
#endif

// Adds half a unit of the last kept digit, a little less for even numbers, so that a tie is rounded
// to even.
HWY_INLINE void cast_vector(const float* from, BFloat16* to) {
  const hn::RebindToUnsigned<Floats<kNativeLanes>> d32;
  const auto bits = hn::BitCast(d32, load_lanes<kNativeLanes>(from));
  const auto magnitude = hn::And(bits, hn::Set(d32, 0x7fffffffu));
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7fffu)));
  const auto quiet = hn::Or(bits, hn::Set(d32, 0x400000u));
  const auto result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d32, 0x7f800000u)), quiet, rounded);
  hn::StoreU(hn::TruncateTo(HalfBits<kNativeLanes>(), hn::ShiftRight<16>(result)),
             HalfBits<kNativeLanes>(), reinterpret_cast<std::uint16_t*>(to));
}

template <class To>
HWY_INLINE void cast_all(const float* from, std::int64_t count, To* to) {
  constexpr auto kStep = static_cast<std::int64_t>(kNativeLanes);
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) cast_vector(from + i, to + i);
  if (i == count) return;
  if (count >= kStep) return cast_vector(from + count - kStep, to + count - kStep);
  for (; i < count; ++i) to[i] = To(from[i]);
}

template <class From>
HWY_INLINE void widen_all(const From* from, std::int64_t count, float* to) {
  constexpr auto kStep = static_cast<std::int64_t>(kNativeLanes);
  const auto widen_vector = [&](std::int64_t i) HWY_ATTR {
    hn::StoreU(load_lanes<kNativeLanes>(from + i), Floats<kNativeLanes>(), to + i);
  };
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) widen_vector(i);
  if (i == count) return;
  if (count >= kStep) return widen_vector(count - kStep);
  for (; i < count; ++i) to[i] = float(from[i]);
}

void widen_half(const Half* from, std::int64_t count, float* to) { widen_all(from, count, to); }
void widen_bfloat16(const BFloat16* from, std::int64_t count, float* to) {
  widen_all(from, count, to);
}
void cast_to_half(const float* from, std::int64_t count, Half* to) { cast_all(from, count, to); }
void cast_to_bfloat16(const float* from, std::int64_t count, BFloat16* to) {
  cast_all(from, count, to);
}

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets {
namespace internal {
HWY_EXPORT(cast_to_half);
HWY_EXPORT(cast_to_bfloat16);
HWY_EXPORT(widen_half);
HWY_EXPORT(widen_bfloat16);
}  // namespace internal

void cast_floats(const float* from, std::int64_t count, Half* to) noexcept {
  using namespace internal;  // the table of targets is in that namespace
  HWY_DYNAMIC_DISPATCH(cast_to_half)(from, count, to);
}
void cast_floats(const float* from, std::int64_t count, BFloat16* to) noexcept {
  using namespace internal;
  HWY_DYNAMIC_DISPATCH(cast_to_bfloat16)(from, count, to);
}

void widen(const Half* from, std::int64_t count, float* to) noexcept {
  using namespace internal;
  HWY_DYNAMIC_DISPATCH(widen_half)(from, count, to);
}
void widen(const BFloat16* from, std::int64_t count, float* to) noexcept {
  using namespace internal;
  HWY_DYNAMIC_DISPATCH(widen_bfloat16)(from, count, to);
}

}  // namespace tessera::codelets
#endif
