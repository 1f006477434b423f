// Block Fwd (block_sums) for every instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/block_sums.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include <algorithm>

#include "tessera/codelets/internal/fast/block_tiles.inl"
#include "tessera/codelets/internal/fast/flushed_floats.hpp"
#include "tessera/codelets/internal/fast/pair_sums.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

// The number of input rows that a tile and the one below it both use: 128 rows of two vectors are
// half of an L1 cache of 32 KiB.
inline constexpr std::int64_t kSharedInputRows = 128;

// The sums of a block row stay in registers over some of its blocks. Not inlined: as parts of one
// function the walks take each other's registers. Zen 5, blocks of 16: 512 x 512, 128 columns 0.92
// to 0.95 of the time.
template <class In, class Walk>
HWY_NOINLINE void forward_by(const BlockSums<In>& args, const Walk& walk) {
  Scratch<In> scratch;
  const auto blocks = static_cast<std::int64_t>(args.columns.size());
  const std::int64_t most =
      Walk::kRows > 0 ? blocks : std::max<std::int64_t>(kSharedInputRows / args.cols, 1);
  for (std::int64_t done = 0; done < blocks;) {
    const BlockRun<In, Walk> run = run_of(args, walk, scratch, done, most);
    add_all(run, args.out + args.row * args.out_stride, args.out_stride, args.rows, args.z,
            Shared());
    done += run.blocks;
  }
}

#if HWY_TARGET != HWY_SCALAR
// Values are fetched 2 KiB ahead, as a block is read across its lines. Sapphire Rapids, 16 columns
// at 0.1: 2048 x 5632, blocks of 16 0.87 and of 8 0.96; 512 x 512 0.99 and 1.01.
inline constexpr std::int64_t kValuesAhead = 512;  // floats

// Fewer columns than a vector has lanes, or one vector of 64 bytes: the other lanes are left out,
// so that a block takes one walk of distances that the compiler knows. Zen 5, 768 x 3072 at 0.1,
// time by that of shorter vectors: blocks of 16, 3, 4, 8 and 10 columns 0.52, 0.80, 0.78 and 0.52;
// blocks of 4, 8 and 10 columns 0.82 and 0.71. With vectors of 32 bytes, 3 and 5 columns 0.58.
template <class Walk>
HWY_NOINLINE void forward_few_columns(const BlockSums<float>& args) {
  constexpr Floats<kNativeLanes> d;
  constexpr auto kHeight = std::min(static_cast<std::size_t>(Walk::kRows), 2 * kTallest);
  constexpr std::int64_t kAhead = kValuesAhead / (Walk::kRows * Walk::kRows);  // blocks
  const auto some = hn::FirstN(d, static_cast<std::size_t>(args.z));
  for (std::int64_t row = 0; row < Walk::kRows; row += std::int64_t{kHeight}) {
    float* const out = args.out + (args.row + row) * args.out_stride;
    FloatVector<kNativeLanes> sums[kHeight];
    for (std::size_t h = 0; h < kHeight; ++h)
      sums[h] = args.replaces ? hn::Zero(d)
                              : hn::MaskedLoad(some, d, out + std::int64_t(h) * args.out_stride);
    const float* factors = args.values + row * Walk::kRows;
    for (const std::uint32_t column : args.columns) {
      const float* in = args.in + std::int64_t{column} * args.in_stride;
      const auto add_row = [&](std::int64_t k) HWY_ATTR {
        if (row == 0) hwy::Prefetch(factors + (kAhead * Walk::kRows + k) * Walk::kRows);
        const auto of_row = hn::MaskedLoad(some, d, in + k * args.in_stride);
        for (std::size_t h = 0; h < kHeight; ++h)
          sums[h] = add_product_lanes(
              sums[h], hn::Set(d, factors[std::int64_t(h) * Walk::kRows + k]), of_row);
      };
      for (std::int64_t k = 0; k < Walk::kRows; k += 2) {
        add_row(k + (Walk::kPaired ? 1 : 0));
        add_row(k + (Walk::kPaired ? 0 : 1));
      }
      factors += Walk::kRows * Walk::kRows;
    }
    for (std::size_t h = 0; h < kHeight; ++h)
      hn::BlendedStore(sums[h], some, d, out + std::int64_t(h) * args.out_stride);
  }
}
#endif

// True if this computed the product: of floats, where a masked load does not touch what it leaves
// out.
template <template <class> class Order, class In>
HWY_INLINE bool forward_if_few(const BlockSums<In>& args) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kMasksLoads && std::is_same_v<In, float>) {
    if (args.rows == 4) return forward_few_columns<Order<SquareWalk<4>>>(args), true;
    if (args.rows == 8) return forward_few_columns<Order<SquareWalk<8>>>(args), true;
    if (args.rows == 16) return forward_few_columns<Order<SquareWalk<16>>>(args), true;
  }
#endif
  return false;
}

// Order<Walk> is the order of the terms: PairedWalk<Walk>, or Walk itself.
template <template <class> class Order, class In>
HWY_INLINE void forward_in_order(const BlockSums<In>& args) {
  if constexpr (HWY_TARGET != HWY_SCALAR && !kInstrumented) {
    const bool is_square = args.rows == args.cols;
    constexpr auto kFew =
        static_cast<std::int64_t>(kNativeLanes) - (HWY_TARGET == HWY_AVX3 ? 0 : 1);
    if (is_square && args.z <= kFew && forward_if_few<Order>(args)) return;
    if (is_square && args.z >= static_cast<std::int64_t>(kNativeLanes)) {
      if (args.rows == 4) return forward_by(args, Order<SquareWalk<4>>());
      if (args.rows == 8) return forward_by(args, Order<SquareWalk<8>>());
      if (args.rows == 16) return forward_by(args, Order<SquareWalk<16>>());
    }
  }
  forward_by(args, Order<AnyWalk>{AnyWalk{.height = args.cols, .depth = 1, .terms = args.cols}});
}
template <class Walk>
using AscendingWalk = Walk;

template <class In>
HWY_INLINE void forward(const BlockSums<In>& args) {
  forward_in_order<AscendingWalk>(args);
}

void forward_float(const BlockSums<float>& args) { forward(args); }
void forward_half(const BlockSums<Half>& args) { forward(args); }

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
// Under FlushedFloats.
template <class In>
HWY_NOINLINE void forward_pairs(const BlockSums<In>& args) {
  forward_in_order<PairedWalk>(args);
}
#else
template <class In>
void forward_pairs(const BlockSums<In>& args) {
  const In* values = args.values;
  for (std::size_t b = 0; b < args.columns.size(); ++b)
    for (std::int64_t i = 0; i < args.rows; ++i, values += args.cols) {
      float* out = args.out + (args.row + i) * args.out_stride;
      if (args.replaces && b == 0) std::fill_n(out, args.z, 0.0f);
      for (std::int64_t k = 0; k < args.cols; ++k) {
        const std::int64_t j = paired_column(k, args.cols);
        const In* in = args.in + (args.columns[b] + j) * args.in_stride;
        for (std::int64_t z = 0; z < args.z; ++z)
          out[z] = add_paired_product(out[z], values[j], in[z]);
      }
    }
}
#endif

void forward_float_pairs(const BlockSums<float>& args) { forward_pairs(args); }
void forward_bfloat16(const BlockSums<BFloat16>& args) {
  if (HWY_TARGET == HWY_AVX3 && pair_sums_are_fast() && pair_sums(args)) return;
  const FlushedFloats mode;
  forward_pairs(args);
}

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets::internal {

HWY_EXPORT(forward_float);
HWY_EXPORT(forward_half);
HWY_EXPORT(forward_bfloat16);
HWY_EXPORT(forward_float_pairs);

void block_sums(const BlockSums<float>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(forward_float)(sums);
}
void block_sums(const BlockSums<Half>& sums) noexcept { HWY_DYNAMIC_DISPATCH(forward_half)(sums); }
void block_sums(const BlockSums<BFloat16>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(forward_bfloat16)(sums);
}
void block_pair_sums(const BlockSums<float>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(forward_float_pairs)(sums);
}

}  // namespace tessera::codelets::internal
#endif
