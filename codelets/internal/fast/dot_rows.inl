// The dot products of a row of q_grad with named rows of s, for rows of any length and for those that
// fit in registers. This is not a header: dots.cpp includes it once for each instruction set, as
// lanes.inl.
#if defined(TESSERA_CODELETS_DOT_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_CODELETS_DOT_ROWS_INL
#undef TESSERA_CODELETS_DOT_ROWS_INL
#else
#define TESSERA_CODELETS_DOT_ROWS_INL
#endif

#include <cstddef>
#include <cstdint>

#include "tessera/codelets/internal/fast/dot_sums.inl"
#include "tessera/codelets/internal/fast/vector_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// With kOffsets the words are byte offsets of rows of s.
template <bool kOffsets, class In>
HWY_INLINE const In* named_row(const ElementDots<In>& args, const std::byte* word) {
  if constexpr (kOffsets)
    return reinterpret_cast<const In*>(reinterpret_cast<const std::byte*>(args.s) +
                                       args.code.word_at(word));
  else
    return args.s + args.code.row_of(word) * args.s_stride;
}

// Computes the dot products of a row of q_grad with n rows of s, n <= kTogether, side by side: they
// hide each other's latency.
template <class In>
class ManyColumns {
 public:
  static constexpr std::size_t kTogether = static_cast<std::size_t>(kTileColumns);

  HWY_INLINE ManyColumns(const ElementDots<In>& args, std::int64_t row)
      : a_(args.q_grad + row * args.q_grad_stride) {}

  template <bool kOffsets, std::size_t kColumns>
  HWY_INLINE void add(const ElementDots<In>& args, const std::byte* words, Vector* to) const {
    const In* b[kColumns];
    for (std::size_t i = 0; i < kColumns; ++i, words += args.code.step)
      b[i] = named_row<kOffsets>(args, words);
    dot_tile<1, kColumns>(&a_, b, args.z, to);
  }

 private:
  const In* a_;
};

// Does the same with the row of q_grad in registers, all kSteps vectors of it. Without the pragma
// g++ keeps a loop over the vectors, and the row in memory.
template <class In, std::size_t kSteps>
class HeldRow {
 public:
  // Eight need as many pointers, which pays only for long rows.
  static constexpr std::size_t kTogether = kSteps > 8 ? 8 : 4;

  HWY_INLINE HeldRow(const ElementDots<In>& args, std::int64_t row) {
    for (std::size_t v = 0; v < kSteps; ++v)
      a_[v] = load_lanes<kLanes>(args.q_grad + row * args.q_grad_stride + v * kLanes);
  }

  template <bool kOffsets, std::size_t kColumns>
  HWY_INLINE void add(const ElementDots<In>& args, const std::byte* words, Vector* to) const {
    const In* b[kColumns];
    Vector sums[kColumns];
    for (std::size_t i = 0; i < kColumns; ++i, words += args.code.step) {
      b[i] = named_row<kOffsets>(args, words);
      sums[i] = hn::Zero(Floats<kLanes>());
    }
    HWY_UNROLL(16)
    for (std::size_t v = 0; v < kSteps; ++v)
      for (std::size_t i = 0; i < kColumns; ++i)
        sums[i] = add_product_lanes(sums[i], a_[v], load_lanes<kLanes>(b[i] + v * kLanes));
    for (std::size_t i = 0; i < kColumns; ++i) to[i] = sums[i];
  }

 private:
  Vector a_[kSteps];
};

// Does the same with short rows of floats: kSteps times sixteen columns, of which the last sixteen
// may be fewer. Dot products of rows in memory took longer: 1024 x 1024, density 0.1, AMD Zen 3, z 10
// 0.74 of the time, z 32 0.82, z 64 0.79; Zen 5, density 0.1, 512 x 512, z 16 0.89, z 100 0.82, 768 x
// 3072, z 50 0.81. With vectors of sixteen lanes and up to 128 columns they are faster than held rows, too (z 64
// 0.90, z 128 0.93), and beyond that they are not (z 192 1.09).
template <std::size_t kSteps>
class ShortRow {
 public:
  static constexpr std::size_t kTogether = kFour;

  HWY_INLINE ShortRow(const ElementDots<float>& args, std::int64_t row)
      : last_(args.z - kBefore * kLanes) {
    load(args.q_grad + row * args.q_grad_stride,
         [&](std::size_t v, Vector lanes) HWY_ATTR { a_[v] = lanes; });
  }

  template <bool kOffsets, std::size_t kColumns>
  HWY_INLINE void add(const ElementDots<float>& args, const std::byte* words, Vector* to) const {
    HWY_UNROLL(8)
    for (std::size_t i = 0; i < kColumns; ++i, words += args.code.step)
      to[i] = dot(named_row<kOffsets>(args, words));
  }

 private:
  static constexpr std::size_t kBefore = (kSteps - 1) * kParts;  // whole vectors

  // Calls use(v, vector v of the row) for all vectors.
  template <class Use>
  HWY_INLINE void load(const float* row, Use&& use) const {
    HWY_UNROLL(16)
    for (std::size_t v = 0; v < kBefore; ++v) use(v, load_lanes<kLanes>(row + v * kLanes));
    HWY_UNROLL(2)
    for (std::size_t p = 0; p < kParts; ++p)
      use(kBefore + p, last_.load(row + kBefore * kLanes, p));
  }
  HWY_INLINE Vector dot(const float* b) const {
    Vector sums[kParts];
    HWY_UNROLL(2)
    for (std::size_t p = 0; p < kParts; ++p) sums[p] = hn::Zero(Floats<kLanes>());
    load(b, [&](std::size_t v, Vector lanes)
                HWY_ATTR { sums[v % kParts] = add_product_lanes(sums[v % kParts], a_[v], lanes); });
    return fold_parts(sums);
  }

  LastLanes<float> last_;
  Vector a_[kSteps * kParts];
};

#endif

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
