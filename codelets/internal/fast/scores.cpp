// The loops of add_best() for every instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/scores.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include <algorithm>

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
    score = rule == BlockScore::Sum
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

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets::internal {
HWY_EXPORT(score_columns);
HWY_EXPORT(find_not_below);

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

}  // namespace tessera::codelets::internal
#endif
