// Element and block GradW for every instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target reads this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/dots.cpp"
#include <hwy/foreach_target.h>
// First the list of targets, then what depends on the target.
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/internal/arithmetic.hpp"
#include "tessera/codelets/internal/fast/lanes.inl"
#include "tessera/codelets/internal/fast/vector_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// The eight sums of a dot product: one vector of eight, or two of four. Sixteen lanes would give
// other bits.
inline constexpr std::size_t kLanes = std::min<std::size_t>(kNativeLanes, kSumLanes);
inline constexpr std::size_t kParts = kSumLanes / kLanes;
// Dot products that run side by side, a_rows x b_rows of them; b_rows is a multiple of four, which
// are added up together. Eight sums hide the latency of an addition.
inline constexpr std::size_t kElementColumns = kParts == 1 ? 8 : 4;
inline constexpr std::size_t kBlockRows = kParts == 2 ? 1 : kManyRegisters ? 4 : 2;
inline constexpr std::size_t kFour = 4;

using Vector = FloatVector<kLanes>;
using FourFloats = FloatVector<kFour>;

struct Eight {
  Vector parts[kParts];
};

template <class In>
HWY_INLINE Eight load_eight(const In* from) {
  Eight result;
  for (std::size_t p = 0; p < kParts; ++p) result.parts[p] = load_lanes<kLanes>(from + p * kLanes);
  return result;
}

// The first `count` < 8 of eight, then zeros: a lane is never -0, so adding +0 changes no bit.
HWY_INLINE Eight load_some(const float* from, std::int64_t count) {
#if HWY_MEM_OPS_MIGHT_FAULT
  float room[kSumLanes] = {};
  for (std::int64_t i = 0; i < count; ++i) room[i] = from[i];
  return load_eight(room);
#else
  Eight result;
  for (std::size_t p = 0; p < kParts; ++p) {
    const auto first = static_cast<std::int64_t>(p * kLanes);
    const auto left = static_cast<std::size_t>(std::max<std::int64_t>(count - first, 0));
    const Floats<kLanes> d;
    result.parts[p] = hn::MaskedLoad(hn::FirstN(d, left), d, from + std::min(first, count));
  }
  return result;
#endif
}
template <class Word>
HWY_INLINE std::uint64_t load_word(const Half* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// By at most two loads that may overlap: a copy element by element would be read back from memory
// before it is there, which cost more than the whole dot product (z 33: 3.5 times).
HWY_INLINE Eight load_some(const Half* from, std::int64_t count) {
  std::uint64_t low = 0, high = 0;  // four halves each
  if (count >= 4) {
    low = load_word<std::uint64_t>(from);
    high = load_word<std::uint64_t>(from + count - 4) >> 16 >> 16 * (7 - count);
  } else if (count >= 2) {
    low = load_word<std::uint32_t>(from) |
          load_word<std::uint32_t>(from + count - 2) >> 16 * (4 - count) << 32;
  } else {
    low = load_word<std::uint16_t>(from);
  }
  const hn::Repartition<std::uint64_t, HalfBits<kLanes>> d64;
  Eight result;
  if constexpr (kParts == 1) {
    const auto halves = hn::InterleaveLower(d64, hn::Set(d64, low), hn::Set(d64, high));
    result.parts[0] = to_floats<kLanes>(hn::BitCast(HalfBits<kLanes>(), halves));
  } else {
    for (std::size_t p = 0; p < kParts; ++p)
      result.parts[p] =
          to_floats<kLanes>(hn::BitCast(HalfBits<kLanes>(), hn::Set(d64, p == 0 ? low : high)));
  }
  return result;
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
HWY_INLINE FourFloats lower_four(const Eight& eight) {
  return hn::LowerHalf(Floats<kFour>(), eight.parts[0]);
}
HWY_INLINE FourFloats upper_four(const Eight& eight) {
  return hn::UpperHalf(Floats<kFour>(), eight.parts[0]);
}
#else
HWY_INLINE FourFloats lower_four(const Eight& eight) { return eight.parts[0]; }
HWY_INLINE FourFloats upper_four(const Eight& eight) { return eight.parts[1]; }
#endif

// a b c d, each with lanes 0 1 2 3 (and 4 5 6 7), turned into lanes 0, 1, 2, 3 of all four.
HWY_INLINE void transpose_four(Eight* v) {
  const Floats<kLanes> d;
  const hn::RepartitionToWide<hn::RebindToUnsigned<Floats<kLanes>>> d64;
  const auto low_pair = [&](Vector a, Vector b) {
    return hn::BitCast(d, hn::InterleaveLower(d64, hn::BitCast(d64, a), hn::BitCast(d64, b)));
  };
  const auto high_pair = [&](Vector a, Vector b) {
    return hn::BitCast(d, hn::InterleaveUpper(d64, hn::BitCast(d64, a), hn::BitCast(d64, b)));
  };
  for (std::size_t p = 0; p < kParts; ++p) {
    const Vector ab01 = hn::InterleaveLower(d, v[0].parts[p], v[1].parts[p]);
    const Vector ab23 = hn::InterleaveUpper(d, v[0].parts[p], v[1].parts[p]);
    const Vector cd01 = hn::InterleaveLower(d, v[2].parts[p], v[3].parts[p]);
    const Vector cd23 = hn::InterleaveUpper(d, v[2].parts[p], v[3].parts[p]);
    v[0].parts[p] = low_pair(ab01, cd01);
    v[1].parts[p] = high_pair(ab01, cd01);
    v[2].parts[p] = low_pair(ab23, cd23);
    v[3].parts[p] = high_pair(ab23, cd23);
  }
}

// The lanes of four dot products added in the order of dot() in arithmetic.hpp.
HWY_INLINE FourFloats add_lanes_of_four(Eight* v) {
  transpose_four(v);
  FourFloats sum = lower_four(v[0]);
  for (std::size_t i = 1; i < kFour; ++i) sum = hn::Add(sum, lower_four(v[i]));
  for (std::size_t i = 0; i < kFour; ++i) sum = hn::Add(sum, upper_four(v[i]));
  return sum;
}

// kRows x kColumns dot products of rows of length z.
template <class In, std::size_t kRows, std::size_t kColumns>
struct DotTile {
  const In* a[kRows];
  const In* b[kColumns];
  Eight sums[kRows][kColumns];

  HWY_INLINE void add(const Eight (&a_lanes)[kRows], const Eight& b_lanes, std::size_t column) {
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t p = 0; p < kParts; ++p)
        sums[r][column].parts[p] =
            add_product_lanes<In>(sums[r][column].parts[p], a_lanes[r].parts[p], b_lanes.parts[p]);
  }

  HWY_INLINE void run(std::int64_t z) {
    for (auto& row : sums)
      for (Eight& sum : row)
        for (Vector& part : sum.parts) part = hn::Zero(Floats<kLanes>());
    Eight a_lanes[kRows];
    std::int64_t first = 0;
    for (; first + kSumLanes <= z; first += kSumLanes) {
      for (std::size_t r = 0; r < kRows; ++r) a_lanes[r] = load_eight(a[r] + first);
      for (std::size_t c = 0; c < kColumns; ++c) add(a_lanes, load_eight(b[c] + first), c);
    }
    if (first == z) return;
    for (std::size_t r = 0; r < kRows; ++r) a_lanes[r] = load_some(a[r] + first, z - first);
    for (std::size_t c = 0; c < kColumns; ++c) add(a_lanes, load_some(b[c] + first, z - first), c);
  }

  // gradients[c] += the dot products of row kRow, for the first `count` columns. All loops are of
  // constant length, so that sums stay in registers.
  template <std::size_t kRow>
  HWY_INLINE void add_to(float* gradients, std::int64_t count) {
    constexpr auto kStep = static_cast<std::int64_t>(kFour);
    const Floats<kFour> d;
    for (std::size_t c = 0; c < kColumns; c += kFour, gradients += kStep, count -= kStep) {
      const FourFloats dots = add_lanes_of_four(&sums[kRow][c]);
      if (count >= kStep) {
        hn::StoreU(hn::Add(hn::LoadU(d, gradients), dots), d, gradients);
        continue;
      }
      float room[kFour];
      hn::StoreU(dots, d, room);
      for (std::int64_t i = 0; i < count; ++i) gradients[i] += room[i];
    }
  }
};

// Where a tile is wider than what is left, its other columns repeat the last one and are dropped.
template <class In, std::size_t kColumns>
HWY_INLINE void row_dots(const ElementDots<In>& args, const TermRow& row, std::int64_t first,
                         std::int64_t count) {
  DotTile<In, 1, kColumns> tile;
  tile.a[0] = args.q_grad + row.row * args.q_grad_stride;
  for (std::size_t c = 0; c < kColumns; ++c) {
    const std::int64_t term = first + std::min(static_cast<std::int64_t>(c), count - 1);
    tile.b[c] = args.s + args.code.row_of(row.words + term * args.code.step) * args.s_stride;
  }
  tile.run(args.z);
  tile.template add_to<0>(args.gradients + row.value + first, count);
}

// So few columns that plain code is faster. One running sum, as no lane has two terms; it has the
// bits of the slow twin, which adds the lanes in the same order and then zeros.
inline constexpr std::int64_t kFewColumns = 3;

template <class In>
HWY_INLINE float few_columns_dot(const In* a, const In* b, std::int64_t z) {
  auto sum = hn::Zero(Floats<1>());
  for (std::int64_t i = 0; i < z; ++i)
    sum = add_product_lanes<In>(sum, load_lanes<1>(a + i), load_lanes<1>(b + i));
  return hn::GetLane(sum);
}

template <class In>
HWY_INLINE void few_columns(const ElementDots<In>& args) {
  for (const TermRow& row : args.rows) {
    const In* q_grad = args.q_grad + row.row * args.q_grad_stride;
    for (std::int64_t i = 0; i < row.count; ++i) {
      const std::uint32_t named = args.code.row_of(row.words + i * args.code.step);
      args.gradients[row.value + i] +=
          few_columns_dot(q_grad, args.s + named * args.s_stride, args.z);
    }
  }
}

template <class In>
HWY_INLINE void few_columns(const BlockDots<In>& args) {
  float* gradient = args.gradients;
  for (const std::uint32_t column : args.columns)
    for (std::int64_t i = 0; i < args.rows; ++i)
      for (std::int64_t j = 0; j < args.cols; ++j)
        *gradient++ += few_columns_dot(args.q_grad + (args.row + i) * args.q_grad_stride,
                                       args.s + (column + j) * args.s_stride, args.z);
}

template <class In>
HWY_INLINE void all_element_dots(const ElementDots<In>& args) {
  if (args.z <= kFewColumns) return few_columns(args);
  constexpr auto kStep = static_cast<std::int64_t>(kElementColumns);
  for (const TermRow& row : args.rows) {
    std::int64_t i = 0;
    for (; i + kStep <= row.count; i += kStep) row_dots<In, kElementColumns>(args, row, i, kStep);
    for (; i < row.count; i += kFour)
      row_dots<In, kFour>(args, row, i, std::min<std::int64_t>(row.count - i, kFour));
  }
}

// A block's rows [i, i + kRows) against all its columns.
template <class In, std::size_t kRows>
HWY_INLINE void block_rows(const BlockDots<In>& args, const In* s, float* gradients,
                           std::int64_t i) {
  DotTile<In, kRows, kFour> tile;
  for (std::size_t r = 0; r < kRows; ++r)
    tile.a[r] = args.q_grad + (args.row + i + static_cast<std::int64_t>(r)) * args.q_grad_stride;
  for (std::int64_t j = 0; j < args.cols; j += kFour) {
    for (std::size_t c = 0; c < kFour; ++c)
      tile.b[c] = s + std::min(j + static_cast<std::int64_t>(c), args.cols - 1) * args.s_stride;
    tile.run(args.z);
    const std::int64_t count = std::min<std::int64_t>(args.cols - j, kFour);
    float* to = gradients + i * args.cols + j;
    tile.template add_to<0>(to, count);
    if constexpr (kRows > 1) tile.template add_to<1>(to + args.cols, count);
    if constexpr (kRows > 2) {
      tile.template add_to<2>(to + 2 * args.cols, count);
      tile.template add_to<3>(to + 3 * args.cols, count);
    }
  }
}

template <class In>
HWY_INLINE void all_block_dots(const BlockDots<In>& args) {
  if (args.z <= kFewColumns) return few_columns(args);
  constexpr auto kStep = static_cast<std::int64_t>(kBlockRows);
  float* gradients = args.gradients;
  for (const std::uint32_t column : args.columns) {
    const In* s = args.s + column * args.s_stride;
    std::int64_t i = 0;
    for (; i + kStep <= args.rows; i += kStep) block_rows<In, kBlockRows>(args, s, gradients, i);
    for (; i < args.rows; ++i) block_rows<In, 1>(args, s, gradients, i);
    gradients += args.rows * args.cols;
  }
}

#else  // one lane is no vector: the sums of the slow twins

template <class In>
void all_element_dots(const ElementDots<In>& args) {
  for (const TermRow& row : args.rows)
    for (std::int64_t i = 0; i < row.count; ++i) {
      const std::uint32_t named = args.code.row_of(row.words + i * args.code.step);
      args.gradients[row.value + i] += dot<float>(args.q_grad + row.row * args.q_grad_stride,
                                                  args.s + named * args.s_stride, args.z);
    }
}

template <class In>
void all_block_dots(const BlockDots<In>& args) {
  float* gradient = args.gradients;
  for (const std::uint32_t column : args.columns)
    for (std::int64_t i = 0; i < args.rows; ++i)
      for (std::int64_t j = 0; j < args.cols; ++j)
        *gradient++ += dot<float>(args.q_grad + (args.row + i) * args.q_grad_stride,
                                  args.s + (column + j) * args.s_stride, args.z);
}

#endif

void element_float(const ElementDots<float>& args) { all_element_dots(args); }
void element_half(const ElementDots<Half>& args) { all_element_dots(args); }
void block_float(const BlockDots<float>& args) { all_block_dots(args); }
void block_half(const BlockDots<Half>& args) { all_block_dots(args); }

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets::internal {

HWY_EXPORT(element_float);
HWY_EXPORT(element_half);
HWY_EXPORT(block_float);
HWY_EXPORT(block_half);

void element_dots(const ElementDots<float>& dots) noexcept {
  HWY_DYNAMIC_DISPATCH(element_float)(dots);
}
void element_dots(const ElementDots<Half>& dots) noexcept {
  HWY_DYNAMIC_DISPATCH(element_half)(dots);
}
void block_dots(const BlockDots<float>& dots) noexcept { HWY_DYNAMIC_DISPATCH(block_float)(dots); }
void block_dots(const BlockDots<Half>& dots) noexcept { HWY_DYNAMIC_DISPATCH(block_half)(dots); }

}  // namespace tessera::codelets::internal
#endif
