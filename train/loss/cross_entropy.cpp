#include "tessera/train/loss/cross_entropy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/codelets/loss.hpp"

namespace tessera::train {
namespace {

void check_loss(MatrixView<const float> scores, std::span<const std::int32_t> labels,
                MatrixView<float> q_grad) {
  if (scores.rows < 1 || labels.empty() || std::ssize(labels) != scores.cols ||
      q_grad.rows != scores.rows || q_grad.cols != scores.cols || q_grad.row_stride != q_grad.cols)
    throw_invalid(fmt::format(
        "cross-entropy: {} labels for scores of {} x {} and a gradient of {} x "
        "{} in rows of {}",
        labels.size(), scores.rows, scores.cols, q_grad.rows, q_grad.cols, q_grad.row_stride));
  const auto worst = std::ranges::find_if(
      labels, [&](std::int32_t label) { return label < 0 || label >= scores.rows; });
  if (worst != labels.end())
    throw_invalid(fmt::format("cross-entropy: label {} of column {}; labels must be below {}",
                              *worst, worst - labels.begin(), scores.rows));
}

}  // namespace

Loss cross_entropy(MatrixView<const float> scores, std::span<const std::int32_t> labels,
                   MatrixView<float> q_grad) {
  check_loss(scores, labels, q_grad);
  Loss loss;
  for (std::int64_t c = 0; c < scores.cols; ++c) {
    std::int64_t best = 0;
    for (std::int64_t r = 0; r < scores.rows; ++r) {
      q_grad(r, c) = scores(r, c);
      if (scores(r, c) > scores(best, c)) best = r;
    }
    loss.right += best == labels[std::size_t(c)];
  }
  const codelets::LossPart all{scores.rows, scores.cols, scores.cols};
  loss.sum = double(scores.cols) *
             double(codelets::softmax_cross_entropy<float>(all, labels.data(), q_grad.data));
  return loss;
}

}  // namespace tessera::train
