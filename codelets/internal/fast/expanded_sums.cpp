// packed_sums() for every instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/expanded_sums.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/internal/fast/expanded_sums.hpp"
#include "tessera/codelets/internal/fast/lanes.inl"

#ifndef TESSERA_CODELETS_EXPANSION_TABLE
#define TESSERA_CODELETS_EXPANSION_TABLE
namespace tessera::codelets::internal {

// For each mask of eight columns, the bytes of a vector of packed 16-bit values that go to each
// byte of the expanded vector; 0x80 gives 0.
using ExpansionTable = std::array<std::array<std::uint8_t, 16>, 256>;

constexpr ExpansionTable make_expansion_table() {
  ExpansionTable table{};
  for (std::size_t mask = 0; mask < table.size(); ++mask) {
    std::uint8_t next = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      const bool is_stored = (mask >> i & 1) != 0;
      table[mask][2 * i] = is_stored ? next++ : std::uint8_t{0x80};
      table[mask][2 * i + 1] = is_stored ? next++ : std::uint8_t{0x80};
    }
  }
  return table;
}
alignas(64) inline constexpr ExpansionTable kExpansion = make_expansion_table();

}  // namespace tessera::codelets::internal
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

template <class T>
HWY_INLINE void all_expanded_sums(const PackedSums<T>& args) {
  packed_sums_plainly(args);
}

#else

inline constexpr std::int64_t kEight = 8;  // 16-bit elements of a vector of 128 bits
using EightWords = hn::Vec<hn::Full128<std::uint16_t> >;

template <class T>
HWY_INLINE EightWords load_eight(const T* from) {
  return hn::LoadU(hn::Full128<std::uint16_t>(), reinterpret_cast<const std::uint16_t*>(from));
}

// The sums of one row and one column of the operand, for groups of eight values: those of group g
// are added to sums 8 g .. 8 g + 7 of the 32.
template <class T>
class RowSums;

template <>
class RowSums<BFloat16> {
 public:
  HWY_INLINE RowSums() {
    for (std::size_t g = 0; g < 4; ++g) even_[g] = odd_[g] = hn::Zero(hn::Full128<float>());
  }
  HWY_INLINE void add(std::size_t group, EightWords values, EightWords in) {
    even_[group] = add_product_lanes(even_[group], even(values), even(in));
    odd_[group] = add_product_lanes(odd_[group], odd(values), odd(in));
  }
  HWY_INLINE float sum() const {
    ExpandedLanes<BFloat16> lanes;
    for (std::size_t g = 0; g < 4; ++g) {
      hn::StoreU(even_[g], hn::Full128<float>(), lanes.first.data() + 4 * g);
      hn::StoreU(odd_[g], hn::Full128<float>(), lanes.second.data() + 4 * g);
    }
    return lanes.sum();
  }

 private:
  using Four = hn::Vec<hn::Full128<float> >;
  static HWY_INLINE Four even(EightWords words) {
    const auto pairs = hn::BitCast(hn::Full128<std::uint32_t>(), words);
    return hn::BitCast(hn::Full128<float>(), hn::ShiftLeft<16>(pairs));
  }
  static HWY_INLINE Four odd(EightWords words) {
    const hn::Full128<std::uint32_t> d32;
    return hn::BitCast(hn::Full128<float>(),
                       hn::And(hn::BitCast(d32, words), hn::Set(d32, 0xffff0000u)));
  }
  Four even_[4], odd_[4];
};

template <>
class RowSums<Half> {
 public:
  HWY_INLINE RowSums() {
    for (std::size_t i = 0; i < kVectors; ++i) sums_[i] = hn::Zero(Floats<kLanes>());
  }
  HWY_INLINE void add(std::size_t group, EightWords values, EightWords in) {
    for (std::size_t part = 0; part < kParts; ++part) {
      FloatVector<kLanes>& sum = sums_[group * kParts + part];
      sum = add_product_lanes(sum, floats(values, part), floats(in, part));
    }
  }
  HWY_INLINE float sum() const {
    ExpandedLanes<Half> lanes;
    constexpr std::size_t kHalf = kVectors / 2;
    for (std::size_t i = 0; i < kHalf; ++i) {
      hn::StoreU(sums_[i], Floats<kLanes>(), lanes.first.data() + i * kLanes);
      hn::StoreU(sums_[i + kHalf], Floats<kLanes>(), lanes.second.data() + i * kLanes);
    }
    return lanes.sum();
  }

 private:
  static constexpr std::size_t kLanes = std::min<std::size_t>(kNativeLanes, 8);
  static constexpr std::size_t kParts = 8 / kLanes, kVectors = 32 / kLanes;
  // A template, so that only the branch that the vectors have is compiled.
  template <std::size_t kWidth = kLanes>
  static HWY_INLINE FloatVector<kWidth> floats(EightWords words, std::size_t part) {
    if constexpr (kWidth == 8) {
      return to_floats<kWidth>(words);
    } else {
      const HalfBits<kWidth> d;
      return to_floats<kWidth>(part == 0 ? hn::LowerHalf(d, words) : hn::UpperHalf(d, words));
    }
  }
  FloatVector<kLanes> sums_[kVectors];
};

template <class T>
HWY_INLINE float bits_row_sum(const PackedSums<T>& args, std::int64_t row, const T* in) {
  const hn::Full128<std::uint8_t> d8;
  const std::int64_t chunks = ceil_div(args.cols, kPackedChunk);
  const std::uint32_t* masks = args.masks + row * chunks;
  const T* values = args.values + args.row_begin[row];
  RowSums<T> sums;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk, in += kPackedChunk) {
    const std::uint32_t mask = masks[chunk];
    for (std::size_t group = 0; group < 4; ++group) {
      const std::uint32_t eight = mask >> (8 * group) & 0xff;
      const auto order = hn::LoadU(d8, kExpansion[eight].data());
      const auto expanded = hn::TableLookupBytesOr0(hn::BitCast(d8, load_eight(values)), order);
      sums.add(group, hn::BitCast(hn::Full128<std::uint16_t>(), expanded),
               load_eight(in + kEight * std::int64_t(group)));
      values += std::popcount(eight);
    }
  }
  return sums.sum();
}

// Adds values first .. first + 7 of a row of a segment, of which there are `count`.
template <class T>
HWY_INLINE void add_looked_up(const T* values, const std::uint8_t* offsets, std::int64_t first,
                              std::int64_t count, const T* in, RowSums<T>& sums) {
  T factors[kEight] = {}, terms[kEight] = {};
  const std::int64_t here = std::min(kEight, count - first);
  for (std::int64_t i = 0; i < here; ++i) {
    factors[i] = values[first + i];
    terms[i] = in[offsets[first + i]];
  }
  sums.add(std::size_t(first / kEight % 4), load_eight(factors), load_eight(terms));
}

template <class T>
HWY_INLINE float bytes_row_sum(const PackedSums<T>& args, std::int64_t row, const T* in) {
  const std::int64_t segments = ceil_div(args.cols, kPackedSegment);
  const T* values = args.values + args.row_begin[row];
  const std::uint8_t* offsets = args.offsets + args.row_begin[row];
  RowSums<T> sums;
  for (std::int64_t segment = 0; segment < segments; ++segment, in += kPackedSegment) {
    const std::int64_t count = args.counts[row * segments + segment];
    for (std::int64_t first = 0; first < count; first += kEight)
      add_looked_up(values, offsets, first, count, in, sums);
    values += count;
    offsets += count;
  }
  return sums.sum();
}

template <class T>
HWY_INLINE void all_expanded_sums(const PackedSums<T>& args) {
  if (HWY_TARGET == HWY_AVX3 && expanded_sums_vbmi2(args)) return;
  const bool bits = args.positions == PackedPositions::Bits;
  for (std::int64_t row = 0; row < args.rows; ++row)
    for (std::int64_t j = 0; j < args.z; ++j) {
      const T* in = args.in + j * args.in_stride;
      args.out[row * args.out_stride + j] =
          bits ? bits_row_sum(args, row, in) : bytes_row_sum(args, row, in);
    }
}

#endif

void expanded_halves(const PackedSums<Half>& args) { all_expanded_sums(args); }
void expanded_bfloat16s(const PackedSums<BFloat16>& args) { all_expanded_sums(args); }

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets::internal {

HWY_EXPORT(expanded_halves);
HWY_EXPORT(expanded_bfloat16s);

void expanded_sums(const PackedSums<Half>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(expanded_halves)(sums);
}
void expanded_sums(const PackedSums<BFloat16>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(expanded_bfloat16s)(sums);
}

}  // namespace tessera::codelets::internal
#endif
