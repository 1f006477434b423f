// The sum of a row for a batch of one. This is not a header, see lanes.inl.
#if defined(TESSERA_CODELETS_ONE_COLUMN_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_CODELETS_ONE_COLUMN_INL
#undef TESSERA_CODELETS_ONE_COLUMN_INL
#else
#define TESSERA_CODELETS_ONE_COLUMN_INL
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "tessera/codelets/internal/arithmetic.hpp"
#include "tessera/codelets/internal/fast/lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

// Asks for the cache line so many bytes beyond an address. That it may lie past the end of the
// memory does no harm, and its address is computed as a number.
HWY_INLINE void prefetch_beyond(const void* from, std::int64_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(from) + static_cast<std::uintptr_t>(bytes);
  __builtin_prefetch(reinterpret_cast<const void*>(at));
}

#if HWY_TARGET == HWY_SCALAR

// Returns the sum over i < count of values[i] * *address(i), as one_column_sum() of arithmetic.hpp.
template <class In, class Address>
HWY_INLINE float one_column_lanes(const In* values, std::int64_t count, Address address) {
  return one_column_sum<float>(values, count, [&](std::int64_t i) { return *address(i); });
}

#else

// The lanes of a vector of terms. Those of floats have at most 32 bytes: loads are joined to longer
// vectors by more shuffles, and fewer rows end in a full one. That takes 0.74 to 0.91 of the time
// of 64 bytes (Zen 5, rows of 8 to 920 terms), but 1.3 to 1.4 with numbers of 16 bits, which are
// widened.
template <class In>
inline constexpr std::size_t kColumnLanes = std::min<std::size_t>(
    kNativeLanes, std::is_same_v<In, float> ? kSumLanes / 2 : kSumLanes);
template <class In>
inline constexpr std::size_t kColumnParts = kSumLanes / kColumnLanes<In>;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
// Joins pairs and then their pairs: with insertions each float would wait for the one before. Takes
// 0.79 times their time (Zen 5).
HWY_INLINE hn::Vec128<float> join_floats(const std::array<const float*, 4>& at) {
  const __m128 low = _mm_unpacklo_ps(_mm_load_ss(at[0]), _mm_load_ss(at[1]));
  const __m128 high = _mm_unpacklo_ps(_mm_load_ss(at[2]), _mm_load_ss(at[3]));
  return hn::Vec128<float>{_mm_movelh_ps(low, high)};
}
#endif

// Collects elements from any addresses, one in each lane. Four loads that are joined take 0.6 times
// the time of the gather instruction (Zen 4), which is split into at least as many steps.
template <std::size_t kLanes, class Address>
HWY_INLINE FloatVector<kLanes> collect_floats(Address address, std::int64_t first) {
  if constexpr (kLanes > 4) {
    constexpr std::size_t kHalf = kLanes / 2;
    return hn::Combine(Floats<kLanes>(), collect_floats<kHalf>(address, first + kHalf),
                       collect_floats<kHalf>(address, first));
  } else {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    if constexpr (requires { address.four(first); }) return join_floats(address.four(first));
    return join_floats(
        {address(first), address(first + 1), address(first + 2), address(first + 3)});
#else
    const float scratch[4] = {*address(first), *address(first + 1), *address(first + 2),
                              *address(first + 3)};
    return load_lanes<4>(scratch);
#endif
  }
}
template <std::size_t kLanes, class In, class Address>
HWY_INLINE FloatVector<kLanes> collect(Address address, std::int64_t first) {
  if constexpr (std::is_same_v<In, float>) {
    return collect_floats<kLanes>(address, first);
  } else {
    In scratch[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i)
      scratch[i] = *address(first + static_cast<std::int64_t>(i));
    return load_lanes<kLanes>(scratch);
  }
}

#if HWY_TARGET == HWY_AVX3
// Collects the 16 floats that 16 words name by their distance in bytes from `in`.
HWY_INLINE FloatVector<16> gather_offsets(const void* in, const std::uint16_t* words) {
  const hn::Rebind<std::int32_t, Floats<16> > d;
  const auto offsets = hn::PromoteTo(d, hn::LoadU(HalfBits<16>(), words));
  return hn::GatherOffset(Floats<16>(), static_cast<const float*>(in), offsets);
}

// Returns the time of the fastest of some runs of `collect16`, which collects the floats that 16
// words of a list name.
template <class Collect>
double least_seconds(Collect collect16) {
  constexpr std::size_t kFloats = 1024, kWords = 512;
  alignas(64) float in[kFloats] = {};
  alignas(64) std::uint16_t words[kWords];
  for (std::size_t i = 0; i < kWords; ++i)
    words[i] = static_cast<std::uint16_t>(i * 37 % kFloats * sizeof(float));
  double least = 1;
  volatile float keep = 0;
  for (int run = 0; run < 16; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    auto sum = hn::Zero(Floats<16>());
    for (std::size_t i = 0; i < kWords; i += 16)
      sum = hn::Add(sum, collect16(reinterpret_cast<const std::byte*>(in), words + i));
    keep = hn::GetLane(sum);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    least = std::min(least, seconds.count());
  }
  static_cast<void>(keep);
  return least;
}

// Returns true if the processor's gather instruction is faster than loads joined by insertions. Its
// time is 0.7 of theirs on Sapphire Rapids and 1.6 times theirs on Zen 4; both give the same bits.
// Measured by the first call, in about 20 us.
inline bool gathers_are_fast() {
  const auto by_instruction = [](const std::byte* in, const std::uint16_t* words)
                                  HWY_ATTR { return gather_offsets(in, words); };
  const auto by_loads = [](const std::byte* in, const std::uint16_t* words) HWY_ATTR {
    return collect_floats<16>(
        [=](std::int64_t i) { return reinterpret_cast<const float*>(in + words[i]); }, 0);
  };
  static const bool fast = least_seconds(by_instruction) < least_seconds(by_loads);
  return fast;
}
#endif

// Adds the upper half of the lanes to the lower one until four are left.
template <std::size_t kLanes>
HWY_INLINE FloatVector<4> fold_lanes(FloatVector<kLanes> v) {
  if constexpr (kLanes > 4) {
    const Floats<kLanes / 2> half;
    return fold_lanes<kLanes / 2>(hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}
template <std::size_t kLanes, std::size_t kParts>
HWY_INLINE FloatVector<4> fold_parts(FloatVector<kLanes> (&sums)[kParts]) {
  for (std::size_t half = kParts / 2; half > 0; half /= 2)
    for (std::size_t p = 0; p < half; ++p) sums[p] = hn::Add(sums[p], sums[p + half]);
  return fold_lanes<kLanes>(sums[0]);
}

template <std::size_t kLanes, std::size_t kParts>
HWY_INLINE float finish_lanes(FloatVector<kLanes> (&sums)[kParts]) {
  const auto four = fold_parts<kLanes>(sums);
  const auto pairs = hn::Add(four, hn::Shuffle1032(four));
  return hn::GetLane(hn::Add(pairs, hn::Shuffle2301(pairs))) + 0.0f;
}

// Returns the sums of four rows, each of which is folded to four lanes, with the bits of
// finish_lanes(): 1.5 shuffles a row where that has two, and no chain of them.
HWY_INLINE FloatVector<4> finish_four(const FloatVector<4> (&rows)[4]) {
  const Floats<4> d;
  const auto pairs = [&](std::size_t r) HWY_ATTR {
    return hn::Add(hn::InterleaveLower(d, rows[r], rows[r + 1]),
                   hn::InterleaveUpper(d, rows[r], rows[r + 1]));
  };
  const auto first = pairs(0), second = pairs(2);
  return hn::Add(
      hn::Add(hn::ConcatLowerLower(d, second, first), hn::ConcatUpperUpper(d, second, first)),
      hn::Zero(d));
}

// Returns the sum of every kStep-th product from kFirst on of a row of kCount floats, at most one
// for each lane, with the bits of the lanes: lane i is added to lane i + 8, then to i + 4, i + 2
// and i + 1. Rows of one length follow one another, so that the branches are foreseen; vectors
// would wait for four shuffles a row. All of it is inlined: a call for each pair of lanes takes
// three times as long.
template <std::size_t kCount, std::size_t kFirst, std::size_t kStep, class Address>
HWY_INLINE float short_row_sum(const float* values, Address address) {
  if constexpr (kFirst + kStep >= kCount)
    return values[kFirst] * *address(kFirst);
  else
    return short_row_sum<kCount, kFirst, 2 * kStep>(values, address) +
           short_row_sum<kCount, kFirst + kStep, 2 * kStep>(values, address);
}

// Adds the products of kSumLanes values with the elements at address(first) and after. As a lambda
// gcc calls it, and the sums would go through memory each time.
template <class In, class Address>
HWY_INLINE void add_terms_of(FloatVector<kColumnLanes<In>> (&sums)[kColumnParts<In>],
                             const In* values, Address address, std::int64_t first) {
  constexpr std::size_t kLanes = kColumnLanes<In>;
  for (std::size_t p = 0; p < kColumnParts<In>; ++p) {
    const auto at = static_cast<std::int64_t>(p * kLanes);
    sums[p] = add_product_lanes(sums[p], load_lanes<kLanes>(values + at),
                                collect<kLanes, In>(address, first + at));
  }
}

template <class In, class Address>
HWY_INLINE float one_column_lanes(const In* values, std::int64_t count, Address address) {
  constexpr std::int64_t kHalf = kSumLanes / 2;
  constexpr std::size_t kLanes = kColumnLanes<In>;
  if constexpr (std::is_same_v<In, float>)
    if (count >= 1 && count <= kSumLanes) {
      float sum;
      if (count <= kHalf)
        with_constant<kHalf>(static_cast<std::size_t>(count), [&](auto n) HWY_ATTR {
          sum = short_row_sum<n, 0, 1>(values, address);
        });
      else
        with_constant<kHalf>(static_cast<std::size_t>(count - kHalf), [&](auto n) HWY_ATTR {
          sum = short_row_sum<n + kHalf, 0, 1>(values, address);
        });
      return sum + 0.0f;
    }
  FloatVector<kLanes> sums[kColumnParts<In>];
  for (auto& sum : sums) sum = hn::Zero(Floats<kLanes>());
  std::int64_t i = 0;
#if HWY_TARGET == HWY_AVX3
  if constexpr (requires { address.gather(i); }) {
    if (gathers_are_fast())
      for (; i + kSumLanes <= count; i += kSumLanes) {
        address.ask_ahead(values, i);
        const auto terms = address.gather(i);
        const Floats<kLanes> d;
        sums[0] = add_product_lanes(sums[0], load_lanes<kLanes>(values + i),
                                    hn::LowerHalf(d, terms));
        sums[1] = add_product_lanes(sums[1], load_lanes<kLanes>(values + i + kLanes),
                                    hn::UpperHalf(d, terms));
      }
  }
#endif
  for (; i + kSumLanes <= count; i += kSumLanes) {
    if constexpr (requires { address.ask_ahead(values, i); }) address.ask_ahead(values, i);
    add_terms_of(sums, values + i, address, i);
  }
  if (i == count) return finish_lanes<kLanes>(sums);
  // A lane that gets 0 * 0 has the bits of one that gets nothing, except for -0.
  if constexpr (kMasksLoads && std::is_same_v<In, float>) {
    const Floats<kLanes> d;
    for (std::size_t p = 0; p < kColumnParts<In>; ++p) {
      const std::int64_t first = i + static_cast<std::int64_t>(p * kLanes);
      if (first >= count) break;
      const auto some = hn::FirstN(d, static_cast<std::size_t>(count - first));
      const auto terms = collect<kLanes, In>(
          [&](std::int64_t k) { return address(std::min(k, count - 1)); }, first);
      sums[p] = add_product_lanes(sums[p], hn::MaskedLoad(some, d, values + first),
                                  hn::IfThenElseZero(some, terms));
    }
    return finish_lanes<kLanes>(sums);
  }
  In factors[kSumLanes] = {}, terms[kSumLanes] = {};
  for (std::int64_t k = 0; i + k < count; ++k) {
    factors[k] = values[i + k];
    terms[k] = *address(i + k);
  }
  add_terms_of(sums, factors, [&](std::int64_t k) { return terms + k; }, 0);
  return finish_lanes<kLanes>(sums);
}

#endif

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
