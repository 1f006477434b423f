#include "tessera/bench/spmm/eigen.hpp"

#ifdef TESSERA_HAS_EIGEN
#include <Eigen/SparseCore>
#include <cstdint>
#include <memory>
#include <vector>
#endif

namespace tessera::bench {

#ifdef TESSERA_HAS_EIGEN
std::function<void()> eigen_product(const sparse::Csr<float>& elements, const Matrix<float>& s,
                                    Matrix<float>& q) {
  using Sparse = Eigen::SparseMatrix<float, Eigen::RowMajor, std::int32_t>;
  using Dense = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const std::vector<std::int32_t> row_begin(elements.row_begin.begin(), elements.row_begin.end());
  const auto r = std::make_shared<const Sparse>(
      Eigen::Map<const Sparse>(elements.rows, elements.cols, elements.blocks(), row_begin.data(),
                               elements.col.data(), elements.values.data()));
  return [r, &s, &q] {
    const Eigen::Map<const Dense> in(s.elements().data(), s.rows(), s.cols());
    Eigen::Map<Dense>(q.elements().data(), q.rows(), q.cols()).noalias() = *r * in;
  };
}
#else
std::function<void()> eigen_product(const sparse::Csr<float>&, const Matrix<float>&,
                                    Matrix<float>&) {
  return {};
}
#endif

}  // namespace tessera::bench
