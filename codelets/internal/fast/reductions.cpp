// add_floats() and add_and_clear() for every instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/reductions.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include "tessera/codelets/internal/fast/lanes.inl"
#include "tessera/codelets/reduce.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

// Adds kVectors vectors side by side, which hides the latency of an addition.
template <std::size_t kLanes, std::size_t kVectors>
HWY_INLINE void add_vectors(const FloatSums& args, std::int64_t i, float* to) {
  const auto load = [&](std::size_t s, std::size_t v) HWY_ATTR {
    const auto* source = reinterpret_cast<const float*>(args.sources[s]) + args.first;
    return load_lanes<kLanes>(source + i + v * kLanes);
  };
  FloatVector<kLanes> sums[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) sums[v] = load(0, v);
  for (std::size_t s = 1; s < args.sources.size(); ++s)
    for (std::size_t v = 0; v < kVectors; ++v) sums[v] = hn::Add(sums[v], load(s, v));
  for (std::size_t v = 0; v < kVectors; ++v)
    hn::StoreU(sums[v], Floats<kLanes>(), to + i + v * kLanes);
}

void add_all(const FloatSums& args, float* to) {
  constexpr std::size_t kVectors = 4;
  constexpr auto kStep = static_cast<std::int64_t>(kNativeLanes * kVectors);
  std::int64_t i = 0;
  for (; i + kStep <= args.count; i += kStep) add_vectors<kNativeLanes, kVectors>(args, i, to);
  for (; i < args.count; ++i) add_vectors<1, 1>(args, i, to);
}

template <std::size_t kLanes>
HWY_INLINE void move_vector(float* from, float* to) {
  const Floats<kLanes> d;
  hn::StoreU(hn::Add(load_lanes<kLanes>(to), load_lanes<kLanes>(from)), d, to);
  hn::StoreU(hn::Zero(d), d, from);
}

void move_all(float* from, std::int64_t count, float* to) {
  constexpr auto kStep = static_cast<std::int64_t>(kNativeLanes);
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) move_vector<kNativeLanes>(from + i, to + i);
  for (; i < count; ++i) move_vector<1>(from + i, to + i);
}

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets {
namespace internal {
HWY_EXPORT(add_all);
HWY_EXPORT(move_all);
}  // namespace internal

void add_floats(const FloatSums& sums, float* to) noexcept {
  using namespace internal;  // the table of targets is in that namespace
  HWY_DYNAMIC_DISPATCH(add_all)(sums, to);
}

void add_and_clear(float* from, std::int64_t count, float* to) noexcept {
  using namespace internal;  // the table of targets is in that namespace
  HWY_DYNAMIC_DISPATCH(move_all)(from, count, to);
}

}  // namespace tessera::codelets
#endif
