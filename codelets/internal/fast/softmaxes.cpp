// The softmax on vectors, for every instruction set. Values of a run are widened to a buffer of
// floats that is filled up to whole groups of lanes, so no loop has a rest.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/softmaxes.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "tessera/base/half.hpp"
#include "tessera/codelets/internal/fast/lanes.inl"
#include "tessera/codelets/internal/softmax_lanes.hpp"
#include "tessera/codelets/softmax.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

// A group of lanes is this many vectors of four, or eight on wider targets.
constexpr std::size_t kWidth = kNativeLanes < kSoftmaxLanes ? kNativeLanes : kSoftmaxLanes;
constexpr std::size_t kVectors = kSoftmaxLanes / kWidth;
using Lanes = Floats<kWidth>;
using Group = FloatVector<kWidth>[kVectors];  // no std::array, whose functions have no target

// A part of a run as floats, at most kMost of them.
struct Chunk {
  static constexpr std::int64_t kMost = 64;
  alignas(64) std::array<float, kMost> values;
  std::int64_t count = 0;

  std::int64_t groups() const {
    return (count + std::int64_t(kSoftmaxLanes) - 1) / std::int64_t(kSoftmaxLanes);
  }
  float* group(std::int64_t g) { return values.data() + g * std::int64_t(kSoftmaxLanes); }
};

// Calls visit(first, count) for the parts of a row that fit a chunk.
template <class Visit>
HWY_INLINE void for_each_part(const SoftmaxRows& rows, std::int64_t row, const Visit& visit) {
  const SoftmaxRows::Runs runs = rows.runs_of(row);
  for (std::int64_t first = runs.first; first < runs.end; first += runs.step)
    for (std::int64_t i = 0; i < runs.count; i += Chunk::kMost)
      visit(first + i, std::min(Chunk::kMost, runs.count - i));
}

// Reads values as floats. What follows the last one is undefined until fill().
template <class T>
HWY_INLINE void read(const T* from, std::int64_t count, Chunk& chunk) {
  chunk.count = count;
  std::int64_t i = 0;
  if constexpr (kNativeLanes > 1)
    for (; i + std::int64_t(kWidth) <= count; i += std::int64_t(kWidth))
      hn::StoreU(load_lanes<kWidth>(from + i), Lanes(), chunk.values.data() + i);
  for (; i < count; ++i) chunk.values[std::size_t(i)] = float(from[i]);
}

HWY_INLINE bool is_left_out(const SoftmaxRows& rows, std::int64_t i) {
  return (rows.kept[std::size_t(i / 32)] >> (i % 32) & 1) == 0;
}

// Writes `instead` where the mask does not keep a value, and after the last one.
HWY_INLINE void fill(const SoftmaxRows& rows, std::int64_t first, float instead, Chunk& chunk) {
  std::fill(chunk.values.begin() + chunk.count,
            chunk.values.begin() + chunk.groups() * std::int64_t(kSoftmaxLanes), instead);
  if (rows.kept.empty()) return;
  for (std::int64_t i = 0; i < chunk.count; ++i)
    if (is_left_out(rows, first + i)) chunk.values[std::size_t(i)] = instead;
}

// Vectors are read as they were stored: a wider load would wait until the stores have ended.
HWY_INLINE void write(const Chunk& chunk, float* to) {
  std::int64_t i = 0;
  for (; i + std::int64_t(kWidth) <= chunk.count; i += std::int64_t(kWidth))
    hn::StoreU(load_lanes<kWidth>(chunk.values.data() + i), Lanes(), to + i);
  for (; i < chunk.count; ++i) to[i] = chunk.values[std::size_t(i)];
}
template <class T>
HWY_INLINE void write(const Chunk& chunk, T* to) {
  for (std::int64_t i = 0; i < chunk.count; ++i) to[i] = T(chunk.values[std::size_t(i)]);
}

// The operations of exp_of_negative() (base/exp.hpp), in its order.
HWY_INLINE FloatVector<kWidth> exponential(FloatVector<kWidth> x) {
  const Lanes d;
  const hn::Rebind<std::int32_t, Lanes> whole;
  const auto set = [&](float v) { return hn::Set(d, v); };
  const auto bottom = set(-87.0f), zero = hn::Zero(d);
  const auto above = hn::IfThenElse(hn::Gt(x, bottom), x, bottom);
  const auto bounded = hn::IfThenElse(hn::Lt(above, zero), above, zero);
  const auto power = hn::ConvertTo(whole, hn::Sub(hn::Mul(bounded, set(1.44269504f)), set(0.5f)));
  const auto n = hn::ConvertTo(d, power);
  const auto r =
      hn::Sub(hn::Sub(bounded, hn::Mul(n, set(0.693145752f))), hn::Mul(n, set(1.42860677e-6f)));
  auto sum = hn::Add(set(1.0f / 120), hn::Mul(r, set(1.0f / 720)));
  for (const float next : {1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
    sum = hn::Add(set(next), hn::Mul(r, sum));
  const auto two_to_power = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(power, hn::Set(whole, 127))));
  const auto scaled = hn::Mul(sum, two_to_power);
  const auto below = hn::IfThenElse(hn::Eq(x, x), zero, x);  // a NaN stays one
  return hn::IfThenElse(hn::Ge(x, bottom), scaled, below);
}

HWY_INLINE float sum_of_group(const Group& group) {
  SoftmaxLanes lanes;
  for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(group[v], Lanes(), &lanes[v * kWidth]);
  return sum_of(lanes);
}

// Calls body(vector, place, v) for each vector of a chunk, v of a group.
template <class Body>
HWY_INLINE void for_each_vector(Chunk& chunk, const Body& body) {
  for (std::int64_t g = 0; g < chunk.groups(); ++g)
    for (std::size_t v = 0; v < kVectors; ++v) {
      float* const place = chunk.group(g) + v * kWidth;
      body(load_lanes<kWidth>(place), place, v);
    }
}

HWY_INLINE float largest_of(const Group& most) {
  SoftmaxLanes lanes;
  for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(most[v], Lanes(), &lanes[v * kWidth]);
  return *std::max_element(lanes.begin(), lanes.end());
}

// Returns what is subtracted from the scores of a row: 0 instead of minus infinity.
HWY_INLINE float top_of(float largest) { return largest == kLeastScore ? 0.0f : largest; }

// Returns true if a row needs no buffer: floats that are all kept, in runs of whole groups.
template <class T>
HWY_INLINE bool is_plain(const SoftmaxRows& rows) {
  return std::is_same_v<T, float> && rows.kept.empty() &&
         rows.run % std::int64_t(kSoftmaxLanes) == 0 && rows.run > 0;
}

// Calls body(offset, v) for each vector of a plain row, v of a group.
template <class Body>
HWY_INLINE void for_each_plain(const SoftmaxRows::Runs& runs, const Body& body) {
  for (std::int64_t first = runs.first; first < runs.end; first += runs.step)
    for (std::int64_t i = first; i < first + runs.count; i += std::int64_t(kSoftmaxLanes))
      for (std::size_t v = 0; v < kVectors; ++v) body(i + std::int64_t(v * kWidth), v);
}

void softmax_plain_row(const SoftmaxRows& rows, std::int64_t row, const float* scores, float* out) {
  const Lanes d;
  const SoftmaxRows::Runs runs = rows.runs_of(row);
  const auto scale = hn::Set(d, rows.scale);
  Group most, sums;
  for (auto& vector : most) vector = hn::Set(d, kLeastScore);
  for_each_plain(runs, [&](std::int64_t i, std::size_t v) {
    const auto score = hn::Mul(load_lanes<kWidth>(scores + i), scale);
    most[v] = hn::IfThenElse(hn::Gt(score, most[v]), score, most[v]);
  });
  const float largest = largest_of(most);
  if (!std::isfinite(largest) && softmax_of_large_row(rows, row, scores, out)) return;
  const auto top = hn::Set(d, top_of(largest));
  for (auto& vector : sums) vector = hn::Zero(d);
  for_each_plain(runs, [&](std::int64_t i, std::size_t v) {
    const auto e = exponential(hn::Sub(hn::Mul(load_lanes<kWidth>(scores + i), scale), top));
    sums[v] = hn::Add(sums[v], e);
    hn::StoreU(e, d, out + i);
  });
  const float sum = sum_of_group(sums);
  const auto factor = hn::Set(d, sum == 0 ? 0.0f : 1 / sum);
  for_each_plain(runs, [&](std::int64_t i, std::size_t) {
    hn::StoreU(hn::Mul(load_lanes<kWidth>(out + i), factor), d, out + i);
  });
}

template <class T>
void softmax_row(const SoftmaxRows& rows, std::int64_t row, const T* scores, T* out) {
  if constexpr (std::is_same_v<T, float>)
    if (is_plain<T>(rows)) return softmax_plain_row(rows, row, scores, out);
  const Lanes d;
  const auto scale = hn::Set(d, rows.scale);
  const auto least = hn::Set(d, kLeastScore);
  Chunk chunk;
  const auto read_scores = [&](std::int64_t first, std::int64_t count) {
    read(scores + first, count, chunk);
    fill(rows, first, 0.0f, chunk);
    for_each_vector(chunk, [&](auto vector, float* place, std::size_t) {
      hn::StoreU(hn::Mul(vector, scale), d, place);
    });
    fill(rows, first, kLeastScore, chunk);
  };
  Group most;
  for (auto& vector : most) vector = least;
  for_each_part(rows, row, [&](std::int64_t first, std::int64_t count) {
    read_scores(first, count);
    for_each_vector(chunk, [&](auto vector, float*, std::size_t v) {
      most[v] = hn::IfThenElse(hn::Gt(vector, most[v]), vector, most[v]);
    });
  });
  const float largest = largest_of(most);
  if (!std::isfinite(largest) && softmax_of_large_row(rows, row, scores, out)) return;
  const auto top = hn::Set(d, top_of(largest));
  Group sums;
  for (auto& vector : sums) vector = hn::Zero(d);
  for_each_part(rows, row, [&](std::int64_t first, std::int64_t count) {
    read_scores(first, count);
    for_each_vector(chunk, [&](auto vector, float* place, std::size_t v) {
      const auto e = exponential(hn::Sub(vector, top));
      sums[v] = hn::Add(sums[v], e);
      hn::StoreU(e, d, place);
    });
    write(chunk, out + first);
  });
  const float sum = sum_of_group(sums), factor = sum == 0 ? 0.0f : 1 / sum;
  for_each_part(rows, row, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t i = first; i < first + count; ++i) out[i] = T(float(out[i]) * factor);
  });
}

void gradient_plain_row(const SoftmaxRows& rows, std::int64_t row, const float* softmax,
                        const float* gradient, float* out) {
  const Lanes d;
  const SoftmaxRows::Runs runs = rows.runs_of(row);
  Group sums;
  for (auto& vector : sums) vector = hn::Zero(d);
  for_each_plain(runs, [&](std::int64_t i, std::size_t v) {
    const auto product = hn::Mul(load_lanes<kWidth>(softmax + i), load_lanes<kWidth>(gradient + i));
    sums[v] = hn::Add(sums[v], product);
  });
  const auto sum = hn::Set(d, sum_of_group(sums)), scale = hn::Set(d, rows.scale);
  for_each_plain(runs, [&](std::int64_t i, std::size_t) {
    const auto above = hn::Sub(load_lanes<kWidth>(gradient + i), sum);
    hn::StoreU(hn::Mul(scale, hn::Mul(load_lanes<kWidth>(softmax + i), above)), d, out + i);
  });
}

template <class T>
void gradient_row(const SoftmaxRows& rows, std::int64_t row, const T* softmax, const T* gradient,
                  T* out) {
  if constexpr (std::is_same_v<T, float>)
    if (is_plain<T>(rows)) return gradient_plain_row(rows, row, softmax, gradient, out);
  const Lanes d;
  Chunk p, g;
  const auto read_both = [&](std::int64_t first, std::int64_t count) {
    read(softmax + first, count, p);
    read(gradient + first, count, g);
    fill(rows, first, 0.0f, p);
    fill(rows, first, 0.0f, g);
  };
  Group sums;
  for (auto& vector : sums) vector = hn::Zero(d);
  for_each_part(rows, row, [&](std::int64_t first, std::int64_t count) {
    read_both(first, count);
    for_each_vector(p, [&](auto vector, float* place, std::size_t v) {
      const auto other = load_lanes<kWidth>(g.values.data() + (place - p.values.data()));
      sums[v] = hn::Add(sums[v], hn::Mul(vector, other));
    });
  });
  const auto sum = hn::Set(d, sum_of_group(sums)), scale = hn::Set(d, rows.scale);
  for_each_part(rows, row, [&](std::int64_t first, std::int64_t count) {
    read_both(first, count);
    for_each_vector(p, [&](auto vector, float* place, std::size_t) {
      const auto other = load_lanes<kWidth>(g.values.data() + (place - p.values.data()));
      hn::StoreU(hn::Mul(scale, hn::Mul(vector, hn::Sub(other, sum))), d, place);
    });
    write(p, out + first);
    if (rows.kept.empty()) return;
    for (std::int64_t i = first; i < first + count; ++i)
      if (is_left_out(rows, i)) out[i] = T(0.0f);
  });
}

#define TESSERA_SOFTMAX_ROWS(T, Suffix)                                                       \
  void softmax_rows_##Suffix(const SoftmaxRows& rows, const T* scores, T* out) {              \
    for (std::int64_t row = 0; row < rows.rows(); ++row) softmax_row(rows, row, scores, out); \
  }                                                                                           \
  void gradient_rows_##Suffix(const SoftmaxRows& rows, const T* softmax, const T* gradient,   \
                              T* out) {                                                       \
    for (std::int64_t row = 0; row < rows.rows(); ++row)                                      \
      gradient_row(rows, row, softmax, gradient, out);                                        \
  }
TESSERA_SOFTMAX_ROWS(float, f32)
TESSERA_SOFTMAX_ROWS(Half, f16)
TESSERA_SOFTMAX_ROWS(BFloat16, bf16)
#undef TESSERA_SOFTMAX_ROWS

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets {
namespace internal {

#define TESSERA_SOFTMAX_EXPORT(Suffix) \
  HWY_EXPORT(softmax_rows_##Suffix);   \
  HWY_EXPORT(gradient_rows_##Suffix);
TESSERA_SOFTMAX_EXPORT(f32)
TESSERA_SOFTMAX_EXPORT(f16)
TESSERA_SOFTMAX_EXPORT(bf16)
#undef TESSERA_SOFTMAX_EXPORT

#define TESSERA_SOFTMAX_CALL(T, Suffix)                                                     \
  void run_softmax(const SoftmaxRows& rows, const T* scores, T* out) {                      \
    HWY_DYNAMIC_DISPATCH(softmax_rows_##Suffix)(rows, scores, out);                         \
  }                                                                                         \
  void run_gradient(const SoftmaxRows& rows, const T* softmax, const T* gradient, T* out) { \
    HWY_DYNAMIC_DISPATCH(gradient_rows_##Suffix)(rows, softmax, gradient, out);             \
  }
TESSERA_SOFTMAX_CALL(float, f32)
TESSERA_SOFTMAX_CALL(Half, f16)
TESSERA_SOFTMAX_CALL(BFloat16, bf16)
#undef TESSERA_SOFTMAX_CALL

}  // namespace internal

template <class T>
void softmax(const SoftmaxRows& rows, const T* scores, T* out) noexcept {
  internal::run_softmax(rows, scores, out);
}

template <class T>
void softmax_gradient(const SoftmaxRows& rows, const T* softmax, const T* gradient,
                      T* out) noexcept {
  internal::run_gradient(rows, softmax, gradient, out);
}

#define TESSERA_SOFTMAX(T)                                          \
  template void softmax(const SoftmaxRows&, const T*, T*) noexcept; \
  template void softmax_gradient(const SoftmaxRows&, const T*, const T*, T*) noexcept;
TESSERA_SOFTMAX(float)
TESSERA_SOFTMAX(Half)
TESSERA_SOFTMAX(BFloat16)
#undef TESSERA_SOFTMAX

}  // namespace tessera::codelets
#endif
