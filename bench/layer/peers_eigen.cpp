#include <Eigen/SparseCore>
#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/bench/layer/peers.hpp"

namespace tessera::bench {

// A row-major sparse matrix times a row-major dense one, which is Eigen's fastest order here.
Product make_eigen(const PeerProblem& problem) {
  using Sparse = Eigen::SparseMatrix<float, Eigen::RowMajor, std::int32_t>;
  using Dense = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const sparse::Csr<float>& csr = problem.elements;
  const std::vector<std::int32_t> row_begin(csr.row_begin.begin(), csr.row_begin.end());
  const auto r = std::make_shared<const Sparse>(Eigen::Map<const Sparse>(
      csr.rows, csr.cols, csr.blocks(), row_begin.data(), csr.col.data(), csr.values.data()));
  return [r, &s = problem.s](Matrix<float>& q) {
    const Eigen::Map<const Dense> in(s.elements().data(), s.rows(), s.cols());
    Eigen::Map<Dense>(q.elements().data(), q.rows(), q.cols()).noalias() = *r * in;
  };
}

}  // namespace tessera::bench
