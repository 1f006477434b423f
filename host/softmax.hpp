#pragma once

#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::host {

// Writes the softmax of every row over the elements that a mask keeps (sparse/block_mask.hpp):
// exp(scale * score - largest of the row) divided by their sum, and 0 elsewhere. `scores` and `out`
// are in the order of the mask's values and may be the same. It is sparse::softmax_rows() on
// vectors, with float sums: the kernel of the modelled machine (codelets/softmax.hpp), whose bits
// BlockSoftmax has. The bits do not depend on the threads. Throws Error{InvalidArgument} for
// another number of values. O(values); allocates a bit for each value of some block rows if the
// mask has zeros inside its blocks.
void softmax_rows(const sparse::Csr<float>& mask, std::span<const float> scores,
                  std::span<float> out, Executor& executor, float scale = 1);

// Writes the gradient of the scores from the softmax p and its gradient g: scale * p * (g - sum
// over the row of p * g), and 0 for what is not kept. `out` may be either of them.
void softmax_rows_gradient(const sparse::Csr<float>& mask, std::span<const float> softmax,
                           std::span<const float> gradient, std::span<float> out,
                           Executor& executor, float scale = 1);

}  // namespace tessera::host
