// Code that the vector kernels share. This is not a header: a source that is compiled for several
// instruction sets includes this file once for each of them, with another HWY_NAMESPACE every time.
#if defined(TESSERA_CODELETS_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_CODELETS_LANES_INL
#undef TESSERA_CODELETS_LANES_INL
#else
#define TESSERA_CODELETS_LANES_INL
#endif

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "tessera/base/half.hpp"
#include "tessera/base/int_math.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t kNativeLanes = HWY_LANES(float);
// AVX-512 and NEON have 32 vector registers, the others 16.
inline constexpr bool kManyRegisters = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON;

// True: a masked load does not touch the elements that it leaves out. Highway says so of AVX-512
// only, because AMD's manual leaves it open for AVX2. But compilers make masked loads of such loops
// for every processor with AVX2, AMD's too, so all have to do it.
#if HWY_TARGET == HWY_AVX2 && !HWY_IS_ASAN && !HWY_IS_MSAN
inline constexpr bool kMasksLoads = true;
#else
inline constexpr bool kMasksLoads = !HWY_MEM_OPS_MIGHT_FAULT;
#endif

// Vectors of kLanes floats. kLanes is a power of two, at most kNativeLanes.
template <std::size_t kLanes>
using Floats = hn::Simd<float, kLanes, 0>;
template <std::size_t kLanes>
using FloatVector = hn::Vec<Floats<kLanes>>;

template <std::size_t kLanes>
HWY_INLINE FloatVector<kLanes> load_lanes(const float* from) {
  return hn::LoadU(Floats<kLanes>(), from);
}

// The bits of halves, one half in each lane.
template <std::size_t kLanes>
using HalfBits = hn::Rebind<std::uint16_t, Floats<kLanes>>;

template <std::size_t kLanes>
HWY_INLINE FloatVector<kLanes> to_floats(hn::Vec<HalfBits<kLanes>> halves) {
  const Floats<kLanes> d;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
  const hn::Rebind<hwy::float16_t, Floats<kLanes>> d16;
  return hn::PromoteTo(d, hn::BitCast(d16, halves));
#else
  // Highway's replacement for the missing instruction treats infinity as a number, so this does
  // what to_float() of arithmetic.hpp does, word by word.
  const hn::RebindToUnsigned<Floats<kLanes>> d32;
  const auto bits = hn::PromoteTo(d32, halves);
  const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(d32, 0x7fffu)));
  const auto finite = hn::BitCast(d32, hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, 0x1p112f)));
  const auto limit = hn::BitCast(d, hn::Set(d32, 0x0f800000u));
  const auto special = hn::IfThenElseZero(
      hn::RebindMask(d32, hn::Ge(hn::BitCast(d, magnitude), limit)), hn::Set(d32, 0x7f800000u));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(d32, 0x8000u)));
  return hn::BitCast(d, hn::Or(sign, hn::Or(finite, special)));
#endif
}

// Converts the bits of halves or bfloat16s, one in each lane, to floats.
template <class In, std::size_t kLanes>
HWY_INLINE FloatVector<kLanes> widen(hn::Vec<HalfBits<kLanes>> bits) {
  if constexpr (std::is_same_v<In, Half>) {
    return to_floats<kLanes>(bits);
  } else {
    const hn::RebindToUnsigned<Floats<kLanes>> d32;
    return hn::BitCast(Floats<kLanes>(), hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
  }
}

template <std::size_t kLanes>
HWY_INLINE FloatVector<kLanes> load_lanes(const Half* from) {
  return to_floats<kLanes>(
      hn::LoadU(HalfBits<kLanes>(), reinterpret_cast<const std::uint16_t*>(from)));
}
template <std::size_t kLanes>
HWY_INLINE FloatVector<kLanes> load_lanes(const BFloat16* from) {
  return widen<BFloat16, kLanes>(
      hn::LoadU(HalfBits<kLanes>(), reinterpret_cast<const std::uint16_t*>(from)));
}

// Copies one element to all lanes.
template <std::size_t kLanes>
HWY_INLINE FloatVector<kLanes> broadcast(const float* from) {
  return hn::Set(Floats<kLanes>(), *from);
}
template <std::size_t kLanes>
HWY_INLINE FloatVector<kLanes> broadcast(const Half* from) {
  return hn::Set(Floats<kLanes>(), hn::GetLane(load_lanes<1>(from)));
}
template <std::size_t kLanes>
HWY_INLINE FloatVector<kLanes> broadcast(const BFloat16* from) {
  return hn::Set(Floats<kLanes>(), float(*from));
}

// Returns the address that it is given, in a register of its own, so that the loads near it differ
// in a constant only. A product that loads one factor is a single micro-operation then. With an
// index register it would be split in two on Intel's processors (1.1 to 1.2 times the time of rows
// of four to eight vectors, Sapphire Rapids).
template <class T>
HWY_INLINE const T* in_register(const T* address) {
  asm("" : "+r"(address));
  return address;
}

// Returns sum + a * b, rounded once as the reference kernels do.
template <class V>
HWY_INLINE V add_product_lanes(V sum, V a, V b) {
#if HWY_TARGET == HWY_SCALAR  // Highway rounds twice without the instruction
  return V(std::fma(a.raw, b.raw, sum.raw));
#elif HWY_TARGET == HWY_EMU128
  for (std::size_t i = 0; i < hn::Lanes(hn::DFromV<V>()); ++i)
    sum.raw[i] = std::fma(a.raw[i], b.raw[i], sum.raw[i]);
  return sum;
#else
  return hn::MulAdd(a, b, sum);
#endif
}

// Calls use(integral constant i) for i < kCount. Indices that are constants from the start let
// g++ keep arrays of vectors in registers; after a loop it left the sums in memory (dot products of
// 128 floats on Zen 3: 13.8 instead of 6.3 ns).
template <std::size_t kCount, class Use>
HWY_INLINE void for_constants(Use&& use) {
  [&]<std::size_t... i>(std::index_sequence<i...>) HWY_ATTR {
    (use(std::integral_constant<std::size_t, i>()), ...);
  }(std::make_index_sequence<kCount>());
}

// Calls run(integral constant N) for the N in 1 .. kMost that equals n.
template <std::size_t kMost, class Run>
HWY_INLINE void with_constant(std::size_t n, Run&& run) {
  if constexpr (kMost > 1) {
    if (n != kMost) return with_constant<kMost - 1>(n, run);
  }
  run(std::integral_constant<std::size_t, kMost>());
}

// A panel is a range of neighbouring columns, at most as many vectors as fit in registers. The last
// vector ends at the last column, so it may overlap the one before. That does no harm: every vector
// is loaded before the first is stored, and both compute the same sums for the columns they share.
// So no remainder and no mask is needed, whatever z is.
struct Panel {
  std::int64_t first;  // column
  std::int64_t last;   // first column of the last vector, counted from `first`
};

// The first column of vector v of kVectors, counted from the panel's first.
template <std::size_t kLanes, std::size_t kVectors>
HWY_INLINE std::int64_t column_of(const Panel& panel, std::size_t v) {
  return v + 1 == kVectors ? panel.last : static_cast<std::int64_t>(v * kLanes);
}

// True if no two vectors of a panel overlap. The distances of all columns are constants then.
template <std::size_t kLanes>
HWY_INLINE bool is_whole(const Panel& panel, std::size_t vectors) {
  return panel.last == static_cast<std::int64_t>((vectors - 1) * kLanes);
}

// Calls run(panel, number of vectors) for z >= kLanes columns in panels of at most kMost vectors.
// The panels are of nearly equal size and the last is the largest: it has two vectors if there is a
// panel before it, and an overlap stays inside it. kMost >= 2.
template <std::size_t kLanes, std::size_t kMost, class Run>
HWY_INLINE void for_each_panel(std::int64_t z, Run&& run) {
  static_assert(kMost >= 2);
  constexpr auto kStep = static_cast<std::int64_t>(kLanes);
  const std::int64_t vectors = ceil_div(z, kStep);
  const std::int64_t panels = ceil_div(vectors, static_cast<std::int64_t>(kMost));
  for (std::int64_t p = 0; p < panels; ++p) {
    const std::int64_t begin = vectors * p / panels, end = vectors * (p + 1) / panels;
    const std::int64_t width = std::min(z - begin * kStep, (end - begin) * kStep);
    const Panel panel{begin * kStep, width - kStep};
    with_constant<kMost>(static_cast<std::size_t>(end - begin),
                         [&](auto count) { run(panel, count); });
  }
}

// Calls run(lanes) with the widest vector that is no longer than z: kNativeLanes if z allows it.
template <std::size_t kLanes = kNativeLanes, class Run>
HWY_INLINE void with_lanes_for(std::int64_t z, Run&& run) {
  if constexpr (kLanes > 1) {
    if (z < static_cast<std::int64_t>(kLanes)) return with_lanes_for<kLanes / 2>(z, run);
  }
  run(std::integral_constant<std::size_t, kLanes>());
}

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
