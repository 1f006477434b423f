// The loads, sums and stores of dot products, and tiles of them. This is not a header: dots.cpp
// includes it once for each instruction set, as lanes.inl.
#if defined(TESSERA_CODELETS_DOT_SUMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_CODELETS_DOT_SUMS_INL
#undef TESSERA_CODELETS_DOT_SUMS_INL
#else
#define TESSERA_CODELETS_DOT_SUMS_INL
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "tessera/codelets/internal/arithmetic.hpp"
#include "tessera/codelets/internal/fast/lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

HWY_INLINE void add_one_to(float& gradient, float sum, bool replaces) {
  gradient = (replaces ? 0.0f : gradient) + sum;
}

#if HWY_TARGET != HWY_SCALAR

// The sixteen lanes of a dot product are one vector, two or four.
inline constexpr std::size_t kLanes = std::min<std::size_t>(kNativeLanes, kSumLanes);
inline constexpr std::size_t kParts = kSumLanes / kLanes;
inline constexpr std::size_t kFour = 4;
// The number of dot products that run side by side, rows x columns. With 32 registers there are 16
// vectors of sums, which hide the latency of an addition and use each loaded row several times;
// otherwise 8.
inline constexpr std::size_t kBlockRows = kParts == 1 ? kFour : 1;
inline constexpr std::int64_t kTileColumns = kParts == 1 ? 8 : 4;

using Vector = FloatVector<kLanes>;

// Loads the first `count` elements of 16 bits, fewer than a vector, and zeros after them. The zeros
// change no bit but the sign of a zero.
#if HWY_TARGET == HWY_AVX3
template <class In>
HWY_INLINE Vector load_some(const In* from, std::int64_t count) {
  const HalfBits<kLanes> d;
  return widen<In, kLanes>(hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(count)), d,
                                          reinterpret_cast<const std::uint16_t*>(from)));
}
#else
template <class Word, class In>
HWY_INLINE std::uint64_t load_word(const In* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// Loads 0 <= count < 4 elements of 16 bits into the low bits with at most two loads, which may
// overlap. A copy element by element would be read back from memory before it is there, which costs
// more than the whole dot product (z 33: 3.5 times).
template <class In>
HWY_INLINE std::uint64_t load_few(const In* from, std::int64_t count) {
  if (count >= 2)
    return load_word<std::uint32_t>(from) |
           load_word<std::uint32_t>(from + count - 2) >> 16 * (4 - count) << 32;
  return count == 1 ? load_word<std::uint16_t>(from) : 0;
}
template <class In>
HWY_INLINE std::uint64_t load_up_to_four(const In* from, std::int64_t count) {
  return count >= 4 ? load_word<std::uint64_t>(from)
                    : load_few(from, std::max<std::int64_t>(count, 0));
}
template <class In>
HWY_INLINE Vector load_some(const In* from, std::int64_t count) {
  const hn::Repartition<std::uint64_t, HalfBits<kLanes>> d64;
  const auto low = hn::Set(d64, load_up_to_four(from, count));
  if constexpr (kLanes == kFour)
    return widen<In, kLanes>(hn::BitCast(HalfBits<kLanes>(), low));
  else
    return widen<In, kLanes>(hn::BitCast(
        HalfBits<kLanes>(),
        hn::InterleaveLower(d64, low, hn::Set(d64, load_up_to_four(from + kFour, count - 4)))));
}
#endif

// Loads the last elements of rows, 1 to 15, of floats up to 16, with zeros after them, one vector at
// a time.
template <class In>
class LastLanes {
 public:
  HWY_INLINE explicit LastLanes(std::int64_t count) : count_(count) {}

  HWY_INLINE Vector load(const In* from, std::size_t part) const {
    const auto left = count_ - static_cast<std::int64_t>(part * kLanes);
    from += part * kLanes;
    if (left >= static_cast<std::int64_t>(kLanes)) return load_lanes<kLanes>(from);
    return left > 0 ? load_some(from, left) : hn::Zero(Floats<kLanes>());
  }

 private:
  std::int64_t count_;
};
// The masks of floats are made once for all rows.
template <>
class LastLanes<float> {
 public:
  HWY_INLINE explicit LastLanes(std::int64_t count) : count_(count) {
    for (std::size_t p = 0; p < kParts; ++p)
      masks_[p] = hn::FirstN(Floats<kLanes>(), left(p));
  }

  HWY_INLINE Vector load(const float* from, std::size_t part) const {
    const Floats<kLanes> d;
    if constexpr (kMasksLoads) return hn::MaskedLoad(masks_[part], d, from + part * kLanes);
    if (left(part) == kLanes) return load_lanes<kLanes>(from + part * kLanes);
    float scratch[kLanes] = {};
    for (std::size_t i = 0; i < left(part); ++i) scratch[i] = from[part * kLanes + i];
    return load_lanes<kLanes>(scratch);
  }

 private:
  HWY_INLINE std::size_t left(std::size_t part) const {
    const auto lanes = static_cast<std::int64_t>(kLanes);
    return static_cast<std::size_t>(
        std::clamp<std::int64_t>(count_ - static_cast<std::int64_t>(part) * lanes, 0, lanes));
  }

  std::int64_t count_;
  hn::Mask<Floats<kLanes>> masks_[kParts];
};

// These functions add lanes as add_lanes() of arithmetic.hpp does: the upper half to the lower
// half, until one is left. Each step does so for two dot products together, so that a vector stays
// full, and leaves half as many vectors. The last vector holds one sum in each lane.
HWY_INLINE Vector fold_parts(const Vector* sum) {
  if constexpr (kParts == 4)
    return hn::Add(hn::Add(sum[0], sum[2]), hn::Add(sum[1], sum[3]));
  else if constexpr (kParts == 2)
    return hn::Add(sum[0], sum[1]);
  else
    return sum[0];
}
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
HWY_INLINE Vector fold_halves(Vector a, Vector b) {
  const Floats<kLanes> d;
  return hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a));
}
#endif
#if HWY_TARGET == HWY_AVX3
// a and b have four blocks of four lanes each. The blocks of the result are sums of blocks of a, b,
// a, b.
HWY_INLINE Vector fold_blocks(Vector a, Vector b) {
  return hn::Add(hn::OddEvenBlocks(b, a), hn::SwapAdjacentBlocks(hn::OddEvenBlocks(a, b)));
}
#endif
HWY_INLINE Vector fold_pairs(Vector a, Vector b) {
  const Floats<kLanes> d;
  const hn::RepartitionToWide<hn::RebindToUnsigned<Floats<kLanes>>> d64;
  const auto a64 = hn::BitCast(d64, a), b64 = hn::BitCast(d64, b);
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, a64, b64)),
                 hn::BitCast(d, hn::InterleaveUpper(d64, a64, b64)));
}
HWY_INLINE Vector fold_neighbours(Vector a, Vector b) {
  const Floats<kLanes> d;
  return fold_pairs(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
}

// Returns the position in the tree of folds of the dot product whose sum ends in lane i. The lower
// folds deal pairs of inputs to blocks and lanes in the order 0 2 1 3.
constexpr std::size_t tree_slot(std::size_t i) {
  constexpr std::size_t kDealt[kFour] = {0, 2, 1, 3};
  const std::size_t block = i / kFour, lane = i % kFour;
  return kLanes / kFour * kDealt[lane] + (kLanes == kSumLanes ? kDealt[block] : block);
}

// Sums kLanes dot products over their lanes, in order.
HWY_INLINE Vector add_lanes_of(const Vector* sums) {
  Vector tree[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) tree[tree_slot(i)] = sums[i];
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  for (std::size_t i = 0; i < kLanes / 2; ++i) tree[i] = fold_halves(tree[2 * i], tree[2 * i + 1]);
#endif
#if HWY_TARGET == HWY_AVX3
  for (std::size_t i = 0; i < kFour; ++i) tree[i] = fold_blocks(tree[2 * i], tree[2 * i + 1]);
#endif
  const Vector all = fold_neighbours(fold_pairs(tree[0], tree[1]), fold_pairs(tree[2], tree[3]));
  return hn::Add(all, hn::Zero(Floats<kLanes>()));  // -0 becomes +0, as in dot()
}

// Computes gradients[i] += sums[i] for the first `count` of kLanes.
HWY_INLINE void add_some_to(float* gradients, Vector sums, std::int64_t count, bool replaces) {
  const Floats<kLanes> d;
  if (count == static_cast<std::int64_t>(kLanes))
    return hn::StoreU(replaces ? sums : hn::Add(hn::LoadU(d, gradients), sums), d, gradients);
  float scratch[kLanes];
  hn::StoreU(sums, d, scratch);
  for (std::int64_t i = 0; i < count; ++i) add_one_to(gradients[i], scratch[i], replaces);
}

// The sums of kRows x kColumns dot products, each in kParts vectors.
template <std::size_t kRows, std::size_t kColumns>
using TileSums = Vector[kRows * kColumns * kParts];

// Adds sixteen products to each of the dot products of rows a and b. load(row, part) returns a
// vector.
template <std::size_t kRows, std::size_t kColumns, class In, class Load>
HWY_INLINE void add_sixteen(const In* const* a, const In* const* b, TileSums<kRows, kColumns>& sums,
                            Load&& load) {
  Vector a_lanes[kRows * kParts];
  for_constants<kRows * kParts>([&](auto i)
                                    HWY_ATTR { a_lanes[i] = load(a[i / kParts], i % kParts); });
  for_constants<kColumns * kParts>([&](auto i) HWY_ATTR {
    constexpr std::size_t kColumn = i / kParts, kPart = i % kParts;
    const Vector b_lanes = load(b[kColumn], kPart);
    for_constants<kRows>([&](auto r) HWY_ATTR {
      Vector& sum = sums[(r * kColumns + kColumn) * kParts + kPart];
      sum = add_product_lanes(sum, a_lanes[r * kParts + kPart], b_lanes);
    });
  });
}

// Computes kRows x kColumns dot products of rows of length z, row-major into `to`. With kAhead the
// row `ahead` is meanwhile fetched into L1.
template <std::size_t kRows, std::size_t kColumns, bool kAhead = false, class In>
HWY_INLINE void dot_tile(const In* const* a, const In* const* b, std::int64_t z, Vector* to,
                         [[maybe_unused]] const In* ahead = nullptr) {
  TileSums<kRows, kColumns> sums;
  for_constants<kRows * kColumns * kParts>([&](auto i)
                                               HWY_ATTR { sums[i] = hn::Zero(Floats<kLanes>()); });
  std::int64_t first = 0;
  HWY_UNROLL(1)
  for (std::int64_t steps = z / kSumLanes; steps > 0; --steps, first += kSumLanes) {
    if constexpr (kAhead) hwy::Prefetch(ahead + first);
    add_sixteen<kRows, kColumns>(a, b, sums, [&](const In* row, std::size_t part) HWY_ATTR {
      return load_lanes<kLanes>(row + first + part * kLanes);
    });
  }
  if (first < z) {
    const LastLanes<In> last(z - first);
    add_sixteen<kRows, kColumns>(a, b, sums, [&](const In* row, std::size_t part) HWY_ATTR {
      return last.load(row + first, part);
    });
  }
  for_constants<kRows * kColumns>([&](auto i) HWY_ATTR { to[i] = fold_parts(&sums[i * kParts]); });
}

// Loads a vector that several products share. g++ would read memory again for each of them, and two
// loads a cycle are fewer than the products that a cycle can do.
template <class Load>
HWY_INLINE Vector load_once(Load&& load) {
  Vector lanes = load();
#if HWY_TARGET == HWY_AVX2
  __asm__("" : "+x"(lanes.raw));
#endif
  return lanes;
}

// Computes half p of the sixteen lanes of kRows x kColumns dot products. With p 0 the row `ahead` is
// meanwhile fetched into L1.
template <std::size_t kRows, std::size_t kColumns, class In>
HWY_INLINE void dot_half(const In* const* a, const In* const* b, std::int64_t z, std::size_t p,
                         const In* ahead, Vector* sums) {
  const std::int64_t whole = z / kSumLanes * kSumLanes;
  const auto add = [&](auto&& load) HWY_ATTR {
    Vector a_lanes[kRows];
    for_constants<kRows>([&](auto r) HWY_ATTR { a_lanes[r] = load(a[r]); });
    for_constants<kColumns>([&](auto c) HWY_ATTR {
      const Vector b_lanes = load_once([&]() HWY_ATTR { return load(b[c]); });
      for_constants<kRows>([&](auto r) HWY_ATTR {
        Vector& sum = sums[r * kColumns + c];
        sum = add_product_lanes(sum, a_lanes[r], b_lanes);
      });
    });
  };
  HWY_UNROLL(1)
  for (std::int64_t first = 0; first < whole; first += kSumLanes) {
    if (p == 0) hwy::Prefetch(ahead + first);
    add([&](const In* row) HWY_ATTR { return load_lanes<kLanes>(row + first + p * kLanes); });
  }
  if (whole + static_cast<std::int64_t>(p * kLanes) < z) {
    const LastLanes<In> last(z - whole);
    add([&](const In* row) HWY_ATTR { return last.load(row + whole, p); });
  }
}

// Does what dot_tile() does where a vector is half of the sixteen lanes and registers are few: one
// half after the other, so that the rows share each vector of b. AMD Zen 3, blocks of 16, density
// 0.1, z 256: 0.91 of the time of one row after the other; z 100: 0.89; blocks of 4, z 100: 0.90.
template <std::size_t kRows, std::size_t kColumns, class In>
HWY_INLINE void dot_tile_by_halves(const In* const* a, const In* const* b, std::int64_t z,
                                   Vector* to, const In* ahead) {
  constexpr std::size_t kDots = kRows * kColumns;
  Vector halves[kParts][kDots];
  for (std::size_t p = 0; p < kParts; ++p) {
    Vector sums[kDots];
    for_constants<kDots>([&](auto i) HWY_ATTR { sums[i] = hn::Zero(Floats<kLanes>()); });
    dot_half<kRows, kColumns>(a, b, z, p, ahead, sums);
    for_constants<kDots>([&](auto i) HWY_ATTR { halves[p][i] = sums[i]; });
  }
  for_constants<kDots>([&](auto i) HWY_ATTR { to[i] = hn::Add(halves[0][i], halves[1][i]); });
}

#endif

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
