#include "tessera/train/loss/cross_entropy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tessera/base/error.hpp"

namespace tessera::train {
namespace {

void check_loss(MatrixView<const float> scores, std::int64_t classes,
                std::span<const std::uint8_t> labels, MatrixView<float> q_grad) {
  if (classes < 1 || classes > scores.rows || labels.empty() || std::ssize(labels) > scores.cols ||
      q_grad.rows != scores.rows || q_grad.cols != scores.cols)
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("cross-entropy: {} classes and {} labels for scores of {} x {} and a "
                    "gradient of {} x {}",
                    classes, labels.size(), scores.rows, scores.cols, q_grad.rows, q_grad.cols));
  const auto worst = std::max_element(labels.begin(), labels.end());
  if (*worst >= classes)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("cross-entropy: label {} of column {}; labels must be below {}", *worst,
                            worst - labels.begin(), classes));
}

}  // namespace

Loss cross_entropy(MatrixView<const float> scores, std::int64_t classes,
                   std::span<const std::uint8_t> labels, MatrixView<float> q_grad) {
  check_loss(scores, classes, labels, q_grad);
  Loss loss;
  const auto count = std::ssize(labels);
  for (std::int64_t c = 0; c < count; ++c) {
    const std::int64_t label = labels[std::size_t(c)];
    std::int64_t best = 0;
    for (std::int64_t r = 1; r < classes; ++r)
      if (scores(r, c) > scores(best, c)) best = r;
    const float largest = scores(best, c);
    float sum = 0;
    for (std::int64_t r = 0; r < classes; ++r) {
      q_grad(r, c) = std::exp(scores(r, c) - largest);
      sum += q_grad(r, c);
    }
    const float scale = 1 / (sum * float(count));
    for (std::int64_t r = 0; r < classes; ++r) q_grad(r, c) *= scale;
    q_grad(label, c) -= 1 / float(count);
    loss.sum += std::log(double(sum)) + double(largest) - double(scores(label, c));
    loss.right += best == label;
  }
  for (std::int64_t r = 0; r < q_grad.rows; ++r)
    for (std::int64_t c = r < classes ? count : 0; c < q_grad.cols; ++c) q_grad(r, c) = 0;
  return loss;
}

}  // namespace tessera::train
