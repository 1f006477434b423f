// Block Fwd for operands with the batch first, for every instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/batch_sums.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include <algorithm>

#include "tessera/codelets/batch_first.hpp"
#include "tessera/codelets/internal/fast/batch_sums.hpp"
#include "tessera/codelets/internal/fast/lanes.inl"
#include "tessera/codelets/transpose.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

// A vector has outputs of one sample. The sums of some samples stay in registers over 16 blocks:
// 24 vectors of 32 registers, or 12 of 16. Each step down the block loads its values, and one
// input of every sample for all outputs.
inline constexpr std::size_t kSide = kBatchFirstSide;
inline constexpr std::int64_t kArea = kBatchFirstSide * kBatchFirstSide;

// Transposed values of some blocks, which fit in L1 with the inputs of two: factors[j][b][i]. A gap
// keeps rows out of one set of the cache.
inline constexpr std::int64_t kMostBlocks = 16;
inline constexpr std::int64_t kFactorStride = kMostBlocks * kBatchFirstSide + kBatchFirstSide;
inline constexpr std::size_t kOutputLanes = std::min(kNativeLanes, kSide);
inline constexpr std::size_t kOutputVectors = kSide / kOutputLanes;
inline constexpr std::size_t kMostSums = kInstrumented ? 4 : kManyRegisters ? 24 : 12;
inline constexpr std::size_t kMostSamples = std::max<std::size_t>(kMostSums / kOutputVectors, 1);

// Samples are counted in groups, because compilers expand loops of few steps only.
inline constexpr std::size_t kGroup = kMostSamples % 8 == 0 ? 8 : kMostSamples;

// Copies the inputs of a block. Samples may be a multiple of 4 KiB apart, so that all of them fall
// into one set of an L1 cache, which could not keep them for 16 steps.
template <std::size_t kSamples>
HWY_INLINE void copy_inputs(const float* in, std::int64_t stride, float* to) {
  for (std::size_t n = 0; n < kSamples; ++n, in += stride, to += kSide)
    for (std::size_t v = 0; v < kOutputVectors; ++v)
      hn::Store(load_lanes<kOutputLanes>(in + v * kOutputLanes), Floats<kOutputLanes>(),
                to + v * kOutputLanes);
}

// Adds the products of `blocks` blocks to the outputs of kGroups * kWidth samples.
template <std::size_t kGroups, std::size_t kWidth>
HWY_INLINE void add_samples(const BatchSums& sums, const float* factors,
                            const std::uint32_t* columns, std::int64_t blocks, std::int64_t first,
                            bool replaces) {
  using Vector = FloatVector<kOutputLanes>;
  constexpr Floats<kOutputLanes> d;
  constexpr std::size_t kSamples = kGroups * kWidth;
  alignas(64) float near[2][kSamples * kSide];
  Vector tile[kGroups][kWidth][kOutputVectors];
  const float* in = sums.in + first * sums.in_stride;
  float* out = sums.out + first * sums.out_stride;
  const auto place = [&](std::size_t g, std::size_t n, std::size_t v) HWY_ATTR {
    return out + static_cast<std::int64_t>(g * kWidth + n) * sums.out_stride + v * kOutputLanes;
  };
  for (std::size_t g = 0; g < kGroups; ++g)
    for (std::size_t n = 0; n < kWidth; ++n)
      for (std::size_t v = 0; v < kOutputVectors; ++v)
        tile[g][n][v] = replaces ? hn::Zero(d) : load_lanes<kOutputLanes>(place(g, n, v));
  copy_inputs<kSamples>(in + columns[0], sums.in_stride, near[0]);
  for (std::int64_t b = 0; b < blocks; ++b, factors += kSide) {
    if (b + 1 < blocks)
      copy_inputs<kSamples>(in + columns[b + 1], sums.in_stride, near[(b + 1) % 2]);
    const float* inputs = near[b % 2];
    for (std::size_t j = 0; j < kSide; ++j) {
      Vector column[kOutputVectors];
      for (std::size_t v = 0; v < kOutputVectors; ++v)
        column[v] = load_lanes<kOutputLanes>(factors + j * kFactorStride + v * kOutputLanes);
      for (std::size_t g = 0; g < kGroups; ++g)
        for (std::size_t n = 0; n < kWidth; ++n) {
          const auto input = hn::Set(d, inputs[(g * kWidth + n) * kSide + j]);
          for (std::size_t v = 0; v < kOutputVectors; ++v)
            tile[g][n][v] = add_product_lanes(tile[g][n][v], column[v], input);
        }
    }
  }
  for (std::size_t g = 0; g < kGroups; ++g)
    for (std::size_t n = 0; n < kWidth; ++n)
      for (std::size_t v = 0; v < kOutputVectors; ++v) hn::StoreU(tile[g][n][v], d, place(g, n, v));
}

// Calls add_samples() for all samples from `first` on, in tiles of kWidth, and of half as many at
// the end.
template <std::size_t kWidth>
HWY_INLINE void add_last_samples(const BatchSums& sums, const float* factors,
                                 const std::uint32_t* columns, std::int64_t blocks,
                                 std::int64_t first, bool replaces) {
  constexpr auto kStep = static_cast<std::int64_t>(kWidth);
  for (; first + kStep <= sums.z; first += kStep)
    add_samples<1, kWidth>(sums, factors, columns, blocks, first, replaces);
  if constexpr (kWidth > 1)
    add_last_samples<kWidth / 2>(sums, factors, columns, blocks, first, replaces);
}

// Calls add_samples() for all samples. Four groups that remain are two tiles of two, because a tile
// of one group has too few sums to keep two units busy.
HWY_INLINE void add_all_samples(const BatchSums& sums, const float* factors,
                                const std::uint32_t* columns, std::int64_t blocks, bool replaces) {
  constexpr std::size_t kGroups = kMostSamples / kGroup;
  constexpr auto kOne = static_cast<std::int64_t>(kGroup);
  constexpr auto kAll = static_cast<std::int64_t>(kMostSamples);
  std::int64_t first = 0;
  for (std::int64_t left = sums.z; left >= std::min(2 * kOne, kAll); left = sums.z - first) {
    const bool two = kGroups == 3 && (left < kAll || left / kOne == 4);
    if (two)
      add_samples<std::min<std::size_t>(kGroups, 2), kGroup>(sums, factors, columns, blocks, first,
                                                             replaces);
    else
      add_samples<kGroups, kGroup>(sums, factors, columns, blocks, first, replaces);
    first += two ? 2 * kOne : kAll;
  }
  add_last_samples<kGroup>(sums, factors, columns, blocks, first, replaces);
}

void batch_sums_float(const BatchSums& sums) {
  alignas(64) float factors[kFactorStride * kBatchFirstSide];
  const auto count = static_cast<std::int64_t>(sums.columns.size());
  for (std::int64_t done = 0; done < count; done += kMostBlocks) {
    const std::int64_t blocks = std::min(kMostBlocks, count - done);
    transpose(sums.values + done * kArea, kBatchFirstSide, blocks * kBatchFirstSide,
              kBatchFirstSide, factors, kFactorStride);
    add_all_samples(sums, factors, sums.columns.data() + done, blocks, sums.replaces && done == 0);
  }
}

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets::internal {

HWY_EXPORT(batch_sums_float);

void batch_sums(const BatchSums& sums) noexcept { HWY_DYNAMIC_DISPATCH(batch_sums_float)(sums); }

}  // namespace tessera::codelets::internal
#endif
