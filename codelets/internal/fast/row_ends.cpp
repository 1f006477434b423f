// The functions of row_ends.hpp for every instruction set.
#include "tessera/codelets/row_ends.hpp"

#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/row_ends.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include <array>
#include <numeric>

#include "tessera/codelets/internal/fast/lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

// Changes to[begin .. count) by change.at<kLanes>(sums, place), in vectors that get shorter at the
// end of the row.
template <std::size_t kLanes, class Change>
HWY_INLINE void change_row(float* to, std::int64_t begin, std::int64_t count,
                           const Change& change) {
  constexpr auto kStep = static_cast<std::int64_t>(kLanes);
  for (; begin + kStep <= count; begin += kStep)
    hn::StoreU(change.template at<kLanes>(load_lanes<kLanes>(to + begin), begin), Floats<kLanes>(),
               to + begin);
  if constexpr (kLanes > 1) change_row<kLanes / 2>(to, begin, count, change);
}

template <bool kClips>
struct BiasedSums {
  float bias;

  template <std::size_t kLanes>
  HWY_INLINE FloatVector<kLanes> at(FloatVector<kLanes> sums, std::int64_t) const {
    const Floats<kLanes> d;
    const auto biased = hn::Add(sums, hn::Set(d, bias));
    if constexpr (!kClips) return biased;
    return hn::IfThenZeroElse(hn::Lt(biased, hn::Zero(d)), biased);
  }
};

struct ClippedSums {
  template <std::size_t kLanes>
  HWY_INLINE FloatVector<kLanes> at(FloatVector<kLanes> sums, std::int64_t) const {
    return hn::IfThenZeroElse(hn::Lt(sums, hn::Zero(Floats<kLanes>())), sums);
  }
};

struct KeptSums {
  const float* outputs;

  template <std::size_t kLanes>
  HWY_INLINE FloatVector<kLanes> at(FloatVector<kLanes> sums, std::int64_t place) const {
    const auto is_positive =
        hn::Gt(load_lanes<kLanes>(outputs + place), hn::Zero(Floats<kLanes>()));
    return hn::IfThenElseZero(is_positive, sums);
  }
};

void end_rows(const FloatRows& sums, const float* bias, bool relu) {
  for (std::int64_t r = 0; r < sums.rows; ++r) {
    float* const row = sums.first + r * sums.stride;
    if (bias == nullptr && relu)
      change_row<kNativeLanes>(row, 0, sums.cols, ClippedSums{});
    else if (bias != nullptr && relu)
      change_row<kNativeLanes>(row, 0, sums.cols, BiasedSums<true>{bias[r]});
    else if (bias != nullptr)
      change_row<kNativeLanes>(row, 0, sums.cols, BiasedSums<false>{bias[r]});
  }
}

void keep_rows(const FloatRows& sums, const float* outputs, std::int64_t outputs_stride) {
  for (std::int64_t r = 0; r < sums.rows; ++r)
    change_row<kNativeLanes>(sums.first + r * sums.stride, 0, sums.cols,
                             KeptSums{outputs + r * outputs_stride});
}

float sum_row(const float* row, std::int64_t count) {
  constexpr std::size_t kSums = 16, kVectors = kSums / kNativeLanes;
  constexpr auto kStep = static_cast<std::int64_t>(kSums);
  const Floats<kNativeLanes> d;
  FloatVector<kNativeLanes> vectors[kVectors];
  for (auto& vector : vectors) vector = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep)
    for (std::size_t v = 0; v < kVectors; ++v)
      vectors[v] = hn::Add(vectors[v], load_lanes<kNativeLanes>(row + i + v * kNativeLanes));
  std::array<float, kSums> lanes;
  for (std::size_t v = 0; v < kVectors; ++v)
    hn::StoreU(vectors[v], d, lanes.data() + v * kNativeLanes);
  for (std::size_t lane = 0; i < count; ++i, ++lane) lanes[lane] += row[i];
  return std::accumulate(lanes.begin(), lanes.end(), 0.0f);
}

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets {
namespace internal {
HWY_EXPORT(end_rows);
HWY_EXPORT(keep_rows);
HWY_EXPORT(sum_row);
}  // namespace internal

void add_bias_and_clip(const FloatRows& sums, const float* bias, bool relu) noexcept {
  using namespace internal;  // the table of targets is in that namespace
  HWY_DYNAMIC_DISPATCH(end_rows)(sums, bias, relu);
}

void keep_where_positive(const FloatRows& sums, const float* outputs,
                         std::int64_t outputs_stride) noexcept {
  using namespace internal;  // the table of targets is in that namespace
  HWY_DYNAMIC_DISPATCH(keep_rows)(sums, outputs, outputs_stride);
}

float sum_in_lanes(const float* row, std::int64_t count) noexcept {
  using namespace internal;  // the table of targets is in that namespace
  return HWY_DYNAMIC_DISPATCH(sum_row)(row, count);
}

}  // namespace tessera::codelets
#endif
