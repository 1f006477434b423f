#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::test {

// Makes a matrix for each group, with the pattern of its weights, of the gradients of GradW.
template <class L>
void split_by_group(const L& layer, const std::vector<float>& all,
                    std::vector<sparse::Csr<float>>& gradients) {
  auto next = all.begin();
  for (std::size_t g = 0; g < gradients.size(); ++g) {
    gradients[g] = layer.weights(std::int64_t(g));
    std::copy_n(next, gradients[g].values.size(), gradients[g].values.begin());
    next += std::ptrdiff_t(gradients[g].values.size());
  }
}

// Runs GradW. `gradients` becomes a matrix for each group, with the pattern of its weights.
template <class T, class L>
typename L::Cost grad_w_by_group(L& layer, MatrixView<const T> q_grad, MatrixView<const T> s,
                                 std::vector<sparse::Csr<float>>& gradients) {
  std::vector<float> all(static_cast<std::size_t>(layer.values()));
  typename L::Cost cost = layer.template grad_w<T>(q_grad, s, all);
  split_by_group(layer, all, gradients);
  return cost;
}

}  // namespace tessera::test
