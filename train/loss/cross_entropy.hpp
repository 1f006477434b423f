#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/matrix.hpp"

namespace tessera::train {

// The loss of a batch.
struct Loss {
  double sum = 0;          // of the cross-entropies of all columns, in nats
  std::int64_t right = 0;  // columns whose largest score is that of their label
};

// Computes the cross-entropy of softmax(scores) with the labels, one for each column, and the
// gradient of its mean, as tiles do (codelets/loss.hpp). q_grad has the shape of scores and no
// gaps, and gets (softmax - one at the label) / columns. Of equal scores the lower class counts.
// Scores of any finite size are legal, as the largest of a column is subtracted first; a score that
// is NaN or +infinity makes the sum NaN. -infinity is a probability of 0, so the sum is infinite
// only if it is the score of the label. Throws Error{InvalidArgument} for no labels, for shapes
// that do not agree and for a label that is no row. O(rows * columns), allocates nothing.
// Thread-safe. Example: scores {{0}, {0}} with label 0 give {.sum = log(2), .right = 1} and q_grad
// {{-.5},
// {.5}}.
Loss cross_entropy(MatrixView<const float> scores, std::span<const std::int32_t> labels,
                   MatrixView<float> q_grad);

}  // namespace tessera::train
