#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tessera/base/executor.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/stopwatch.hpp"
#include "tessera/codelets/activation.hpp"
#include "tessera/layer/layer.hpp"
#include "tessera/planner/network.hpp"

// The loops over operands that no pass of a layer does.
namespace tessera::train::internal {

// Returns whether the passes of a layer apply an activation, and its derivative. In 16 bits the
// codelets' loops after a pass are faster, and a cap is theirs.
template <class T>
bool is_in_pass(const codelets::ActivationRule& rule, const layer::Layer& layer) {
  const bool has_cap =
      rule.kind == codelets::Activation::Relu && rule.cap != std::numeric_limits<float>::infinity();
  return std::is_same_v<T, float> && !has_cap && layer.facts().works_on_results;
}

// Returns the distance of the rows of operands in elements of T: whole cache lines, so that layers
// read rows where they are; rows of less than a line have no gaps.
template <class T>
std::int64_t stride_of_rows(std::int64_t columns) {
  constexpr std::int64_t kLine = 64 / sizeof(T);
  return columns < kLine ? columns : round_up(columns, kLine);
}

// Calls body(), and timer(work, layer, seconds) with the seconds that it took, if there is a timer.
template <class Timer, class Body>
void timed(const Timer& timer, planner::NetworkWork work, std::int64_t layer, Body&& body) {
  if (!timer) return body();
  const Stopwatch watch;
  body();
  timer(work, layer, watch.seconds());
}

// Calls body(row) for all rows; threads get enough work to be woken for.
template <class Body>
void for_each_row(std::int64_t rows, std::int64_t cols, Executor& executor, Body&& body) {
  constexpr std::int64_t kNumbersAtOnce = 1 << 14;
  const std::int64_t piece =
      std::max<std::int64_t>(1, kNumbersAtOnce / std::max(cols, std::int64_t(1)));
  executor.for_each(ceil_div(rows, piece), [&](std::int64_t i) {
    const std::int64_t end = std::min(rows, (i + 1) * piece);
    for (std::int64_t row = i * piece; row < end; ++row) body(row);
  });
}

// Writes numbers, multiplied by a scale, in the type of a matrix of the same shape.
template <class From, class To>
void copy_rounded(MatrixView<const From> from, MatrixView<To> to, float scale = 1) {
  for (std::int64_t row = 0; row < from.rows; ++row)
    for (std::int64_t col = 0; col < from.cols; ++col)
      to(row, col) = To(float(from(row, col)) * scale);
}

}  // namespace tessera::train::internal
