#pragma once

#include <cstddef>
#include <vector>

#include "tessera/base/matrix.hpp"

namespace tessera::test {

// The results of all passes of a layer.
template <class T>
struct Results {
  Matrix<T> q, s_grad;
  std::vector<float> gradients;
  friend bool operator==(const Results&, const Results&) = default;
};

// Returns results of the sizes that the layer writes, filled with zeros.
template <class T, class Layer>
Results<T> zero_results(const Layer& layer, MatrixView<const T> s, MatrixView<const T> q_grad) {
  return {Matrix<T>(q_grad.rows, q_grad.cols), Matrix<T>(s.rows, s.cols),
          std::vector<float>(std::size_t(layer.values()))};
}

// Runs all three passes and returns their results.
template <class T, class Layer>
Results<T> run_passes(Layer& layer, MatrixView<const T> s, MatrixView<const T> q_grad) {
  Results<T> r = zero_results<T>(layer, s, q_grad);
  layer.template forward<T>(s, r.q.view());
  layer.template grad_a<T>(q_grad, r.s_grad.view());
  layer.template grad_w<T>(q_grad, s, r.gradients);
  return r;
}

}  // namespace tessera::test
