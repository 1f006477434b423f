#include <cblas.h>

#include <memory>

#include "tessera/bench/layer/peers.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::bench {

// OpenBLAS multiplies the zeros, too.
Product make_open_blas(const PeerProblem& problem) {
  if (problem.batch_first) return {};
  openblas_set_num_threads(1);
  const auto r = std::make_shared<const Matrix<float>>(sparse::to_dense(problem.weights));
  return [r, &s = problem.s](Matrix<float>& q) {
    const auto x = static_cast<int>(r->rows()), y = static_cast<int>(r->cols());
    const auto z = static_cast<int>(s.cols());
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, x, z, y, 1, r->elements().data(), y,
                s.elements().data(), z, 0, q.elements().data(), z);
  };
}

std::string open_blas_kernels() { return openblas_get_corename(); }

}  // namespace tessera::bench
