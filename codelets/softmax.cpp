// The reference kernels: one value after the other.
#include "tessera/codelets/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/base/exp.hpp"
#include "tessera/codelets/internal/softmax_lanes.hpp"

namespace tessera::codelets {
namespace {

using internal::kLeastScore, internal::SoftmaxLanes;

// Calls visit(i, lane) for the values of a row, in order.
template <class Visit>
void for_each_value(const SoftmaxRows& rows, std::int64_t row, const Visit& visit) {
  const SoftmaxRows::Runs runs = rows.runs_of(row);
  for (std::int64_t first = runs.first; first < runs.end; first += runs.step)
    for (std::int64_t i = 0; i < runs.count; ++i)
      visit(first + i, std::size_t(i) % internal::kSoftmaxLanes);
}

bool is_kept(const SoftmaxRows& rows, std::int64_t i) {
  return rows.kept.empty() || (rows.kept[std::size_t(i / 32)] >> (i % 32) & 1) != 0;
}

}  // namespace

template <class T>
void softmax_reference(const SoftmaxRows& rows, const T* scores, T* out) noexcept {
  for (std::int64_t row = 0; row < rows.rows(); ++row) {
    const auto score = [&](std::int64_t i) {
      return is_kept(rows, i) ? rows.scale * float(scores[i]) : kLeastScore;
    };
    float largest = kLeastScore;
    for_each_value(rows, row, [&](std::int64_t i, std::size_t) {
      if (score(i) > largest) largest = score(i);
    });
    if (!std::isfinite(largest) && internal::softmax_of_large_row(rows, row, scores, out)) continue;
    if (largest == kLeastScore) largest = 0;  // exp() of every kept score is 0
    SoftmaxLanes sums{};
    for_each_value(rows, row, [&](std::int64_t i, std::size_t lane) {
      const float e = exp_of_negative(score(i) - largest);
      sums[lane] += e;
      out[i] = T(e);
    });
    const float sum = internal::sum_of(sums), factor = sum == 0 ? 0.0f : 1 / sum;
    for_each_value(rows, row,
                   [&](std::int64_t i, std::size_t) { out[i] = T(float(out[i]) * factor); });
  }
}

template <class T>
bool internal::softmax_of_large_row(const SoftmaxRows& rows, std::int64_t row, const T* scores,
                                    T* out) noexcept {
  const float sign = rows.scale < 0 ? -1.0f : 1.0f;  // of the order of scores
  float best = kLeastScore;
  for_each_value(rows, row, [&](std::int64_t i, std::size_t) {
    if (is_kept(rows, i)) best = std::max(best, sign * float(scores[i]));
  });
  if (!std::isfinite(best) || !std::isfinite(rows.scale)) return false;
  SoftmaxLanes sums{};
  for_each_value(rows, row, [&](std::int64_t i, std::size_t lane) {
    const float below = rows.scale * (float(scores[i]) - sign * best);
    const float e = is_kept(rows, i) ? exp_of_negative(below) : 0.0f;
    sums[lane] += e;
    out[i] = T(e);
  });
  const float factor = 1 / internal::sum_of(sums);  // the best score adds 1
  for_each_value(rows, row,
                 [&](std::int64_t i, std::size_t) { out[i] = T(float(out[i]) * factor); });
  return true;
}

template <class T>
void softmax_gradient_reference(const SoftmaxRows& rows, const T* softmax, const T* gradient,
                                T* out) noexcept {
  for (std::int64_t row = 0; row < rows.rows(); ++row) {
    SoftmaxLanes sums{};
    for_each_value(rows, row, [&](std::int64_t i, std::size_t lane) {
      sums[lane] += is_kept(rows, i) ? float(softmax[i]) * float(gradient[i]) : 0.0f;
    });
    const float sum = internal::sum_of(sums);
    for_each_value(rows, row, [&](std::int64_t i, std::size_t) {
      const float g = rows.scale * (float(softmax[i]) * (float(gradient[i]) - sum));
      out[i] = T(is_kept(rows, i) ? g : 0.0f);
    });
  }
}

#define TESSERA_SOFTMAX(T)                                                                 \
  template bool internal::softmax_of_large_row(const SoftmaxRows&, std::int64_t, const T*, \
                                               T*) noexcept;                               \
  template void softmax_reference(const SoftmaxRows&, const T*, T*) noexcept;              \
  template void softmax_gradient_reference(const SoftmaxRows&, const T*, const T*, T*) noexcept;
TESSERA_SOFTMAX(float)
TESSERA_SOFTMAX(Half)
TESSERA_SOFTMAX(BFloat16)
#undef TESSERA_SOFTMAX

}  // namespace tessera::codelets
