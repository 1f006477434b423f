// add_floats(), add_and_clear() and largest() for every instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/reductions.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <span>

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

template <class T>
HWY_INLINE T largest_of(std::span<const T> list) {
  const hn::ScalableTag<T> d;
  constexpr std::size_t kLanes = hn::MaxLanes(d), kVectors = 4;
  T all = 0;
  if (list.size() < kLanes) {
    for (const T number : list) all = std::max(all, number);
    return all;
  }
  hn::Vec<decltype(d)> largest[kVectors];
  const auto look = [&](std::size_t v, std::size_t at)
                        HWY_ATTR { largest[v] = hn::Max(largest[v], hn::LoadU(d, &list[at])); };
  for (auto& vector : largest) vector = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kLanes * kVectors <= list.size(); i += kLanes * kVectors)
    for (std::size_t v = 0; v < kVectors; ++v) look(v, i + v * kLanes);
  for (; i + kLanes <= list.size(); i += kLanes) look(0, i);
  look(1, list.size() - kLanes);  // reads some numbers twice
  for (std::size_t v = 1; v < kVectors; ++v) largest[0] = hn::Max(largest[0], largest[v]);
  T lanes[kLanes];
  hn::StoreU(largest[0], d, lanes);
  for (const T lane : lanes) all = std::max(all, lane);
  return all;
}

std::uint32_t largest_32(std::span<const std::uint32_t> list) { return largest_of(list); }
std::uint64_t largest_64(std::span<const std::uint64_t> list) { return largest_of(list); }

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets {
namespace internal {
HWY_EXPORT(add_all);
HWY_EXPORT(move_all);
HWY_EXPORT(largest_32);
HWY_EXPORT(largest_64);
}  // namespace internal

void add_floats(const FloatSums& sums, float* to) noexcept {
  using namespace internal;  // the table of targets is in that namespace
  HWY_DYNAMIC_DISPATCH(add_all)(sums, to);
}

void add_and_clear(float* from, std::int64_t count, float* to) noexcept {
  using namespace internal;  // the table of targets is in that namespace
  HWY_DYNAMIC_DISPATCH(move_all)(from, count, to);
}

std::uint32_t largest(std::span<const std::uint32_t> list) noexcept {
  using namespace internal;  // the table of targets is in that namespace
  return HWY_DYNAMIC_DISPATCH(largest_32)(list);
}
std::uint64_t largest(std::span<const std::uint64_t> list) noexcept {
  using namespace internal;  // the table of targets is in that namespace
  return HWY_DYNAMIC_DISPATCH(largest_64)(list);
}

}  // namespace tessera::codelets
#endif
