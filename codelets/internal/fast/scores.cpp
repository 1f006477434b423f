// The loops of add_best(), and find_large(), for every instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/scores.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "tessera/codelets/find_large.hpp"
#include "tessera/codelets/internal/fast/lanes.inl"
#include "tessera/codelets/internal/fast/scores.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

template <std::size_t kLanes>
HWY_INLINE void score_lanes(const RowsOfBlocks& from, BlockScore rule, float* to) {
  FloatVector<kLanes> score = hn::Abs(load_lanes<kLanes>(from.first));
  for (std::int64_t r = 1; r < from.rows; ++r) {
    const auto next = hn::Abs(load_lanes<kLanes>(from.first + r * from.stride));
    // A comparison with NaN is false, so a NaN stays.
    score = rule != BlockScore::Max
                ? hn::Add(score, next)
                : hn::IfThenElse(hn::Le(next, score), score,
                                 hn::IfThenElse(hn::Eq(score, score), next, score));
  }
  hn::StoreU(score, Floats<kLanes>(), to);
}

void score_columns(const RowsOfBlocks& all, BlockScore rule, std::int64_t count, float* to) {
  constexpr auto kStep = static_cast<std::int64_t>(kNativeLanes);
  const auto from = [&](std::int64_t i) {
    return RowsOfBlocks{all.first + i, all.rows, all.stride};
  };
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) score_lanes<kNativeLanes>(from(i), rule, to + i);
  for (; i < count; ++i) score_lanes<1>(from(i), rule, to + i);
}

std::int64_t find_not_below(const float* scores, std::int64_t begin, std::int64_t count,
                            float threshold) {
  constexpr auto kStep = static_cast<std::int64_t>(kNativeLanes);
  const Floats<kNativeLanes> d;
  const auto least = hn::Set(d, threshold);
  std::int64_t i = begin;
  // Few scores reach the threshold, so a vector is searched only if one of its lanes does.
  for (; i + kStep <= count; i += kStep)
    if (!hn::AllTrue(d, hn::Lt(hn::LoadU(d, scores + i), least))) break;
  while (i < count && scores[i] < threshold) ++i;
  return i;
}

// Returns a bit for each lane that is not below the threshold.
HWY_INLINE std::uint64_t large_lanes(const float* values, FloatVector<kNativeLanes> least) {
  const Floats<kNativeLanes> d;
  std::array<std::uint8_t, 8> bytes{};
  hn::StoreMaskBits(d, hn::Not(hn::Lt(hn::Abs(hn::LoadU(d, values)), least)), bytes.data());
  std::conditional_t<kNativeLanes <= 8, std::uint8_t, std::uint16_t> bits = 0;
  std::memcpy(&bits, bytes.data(), sizeof(bits));
  return bits;
}

// Looks at 64 values together, so that there is one hard branch for them and not one for each
// vector. Every second vector may have a large value.
std::int64_t list_large(const float* values, std::int64_t count, float threshold,
                        std::uint32_t* positions) {
  constexpr std::int64_t kTogether = 64, kStep = static_cast<std::int64_t>(kNativeLanes);
  const auto least = hn::Set(Floats<kNativeLanes>(), threshold);
  std::int64_t found = 0, i = 0;
  for (; i + kTogether <= count; i += kTogether) {
    std::uint64_t bits = 0;
    for (std::int64_t j = 0; j < kTogether; j += kStep)
      bits |= large_lanes(values + i + j, least) << j;
    for (; bits != 0; bits &= bits - 1)
      positions[found++] = static_cast<std::uint32_t>(i + std::countr_zero(bits));
  }
  for (; i < count; ++i) {
    positions[found] = static_cast<std::uint32_t>(i);
    found += !(std::abs(values[i]) < threshold);
  }
  return found;
}

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets::internal {
HWY_EXPORT(score_columns);
HWY_EXPORT(find_not_below);
HWY_EXPORT(list_large);

void column_scores(const GradientPart& part, std::int64_t block_row, std::int64_t first,
                   std::int64_t count, float* scores) noexcept {
  const std::int64_t row = block_row * part.block.rows;
  const RowsOfBlocks from{part.gradients + row * part.columns + first,
                          std::min(part.block.rows, part.rows - row), part.columns};
  HWY_DYNAMIC_DISPATCH(score_columns)(from, part.score, count, scores);
}

std::int64_t first_not_below(const float* scores, std::int64_t begin, std::int64_t count,
                             float threshold) noexcept {
  return HWY_DYNAMIC_DISPATCH(find_not_below)(scores, begin, count, threshold);
}

std::int64_t find_large_values(const float* values, std::int64_t count, float threshold,
                               std::uint32_t* positions) noexcept {
  return HWY_DYNAMIC_DISPATCH(list_large)(values, count, threshold, positions);
}

}  // namespace tessera::codelets::internal
#endif
