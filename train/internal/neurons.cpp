#include "tessera/train/internal/neurons.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "tessera/base/int_math.hpp"

namespace tessera::train::internal {
namespace {

// Enough work for a thread to be woken for.
constexpr std::int64_t kNumbersAtOnce = 1 << 14;

template <class Body>
void for_each_row(std::int64_t rows, std::int64_t cols, Executor& executor, Body&& body) {
  const std::int64_t piece =
      std::max<std::int64_t>(1, kNumbersAtOnce / std::max(cols, std::int64_t(1)));
  executor.for_each(ceil_div(rows, piece), [&](std::int64_t i) {
    const std::int64_t end = std::min(rows, (i + 1) * piece);
    for (std::int64_t row = i * piece; row < end; ++row) body(row);
  });
}

}  // namespace

void add_bias(MatrixView<float> rows, std::span<const float> bias, Executor& executor) {
  for_each_row(rows.rows, rows.cols, executor, [&](std::int64_t r) {
    float* const row = rows.row(r);
    for (std::int64_t c = 0; c < rows.cols; ++c) row[c] += bias[std::size_t(r)];
  });
}

void activate(MatrixView<float> rows, host::Activation activation, Executor& executor) {
  if (activation == host::Activation::None) return;
  for_each_row(rows.rows, rows.cols, executor, [&](std::int64_t r) {
    host::activate(activation, {rows.row(r), std::size_t(rows.cols)});
  });
}

void pass_where_positive(MatrixView<const float> output, MatrixView<float> gradient,
                         Executor& executor) {
  for_each_row(output.rows, output.cols, executor, [&](std::int64_t r) {
    const float* const out = output.row(r);
    float* const row = gradient.row(r);
    for (std::int64_t c = 0; c < output.cols; ++c) row[c] = out[c] > 0 ? row[c] : 0;
  });
}

void sum_rows(MatrixView<const float> rows, std::span<float> sums, Executor& executor) {
  constexpr std::int64_t kLanes = 16;
  for_each_row(rows.rows, rows.cols, executor, [&](std::int64_t r) {
    const float* const row = rows.row(r);
    std::array<float, kLanes> lanes{};
    std::int64_t c = 0;
    for (; c + kLanes <= rows.cols; c += kLanes)
      for (std::int64_t i = 0; i < kLanes; ++i) lanes[std::size_t(i)] += row[c + i];
    for (; c < rows.cols; ++c) lanes[std::size_t(c % kLanes)] += row[c];
    float sum = 0;
    for (const float lane : lanes) sum += lane;
    sums[std::size_t(r)] = sum;
  });
}

}  // namespace tessera::train::internal
