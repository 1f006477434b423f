#if !defined(__clang__)
// The headers of g++ 12 begin results with a register of any content, and warn of that themselves.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <Eigen/SparseCore>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tessera/bench/layer/peers.hpp"
#include "tessera/bench/layer/peers_16bit.hpp"

namespace tessera::bench {
namespace {

// Number is Eigen's type with the bits of T.
template <class Number, class T>
std::vector<Product16> products_of(const Peer16Problem<T>& problem) {
  using Sparse = Eigen::SparseMatrix<Number, Eigen::RowMajor, std::int32_t>;
  using Dense = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  constexpr double kMostMultiplications = 5e7, kErrorOfSums = 0.5;
  const sparse::Csr<float>& csr = problem.elements;
  if (double(csr.blocks()) * double(problem.s.cols()) > kMostMultiplications) return {};
  const std::vector<std::int32_t> row_begin(csr.row_begin.begin(), csr.row_begin.end());
  std::vector<Number> values;
  for (const float value : csr.values) values.push_back(Number(value));
  const auto r = std::make_shared<const Sparse>(Eigen::Map<const Sparse>(
      csr.rows, csr.cols, csr.blocks(), row_begin.data(), csr.col.data(), values.data()));
  const auto s = std::make_shared<Dense>(problem.s.rows(), problem.s.cols());
  for (std::int64_t y = 0; y < problem.s.rows(); ++y)
    for (std::int64_t z = 0; z < problem.s.cols(); ++z) (*s)(y, z) = Number(float(problem.s(y, z)));
  const auto q = std::make_shared<Dense>(csr.rows, problem.s.cols());
  return {{"Eigen, sums in 16 bits", [r, s, q] { q->noalias() = *r * *s; },
           [q](std::int64_t x, std::int64_t z) { return float((*q)(x, z)); }, kErrorOfSums}};
}

}  // namespace

std::vector<Product16> eigen_products(const Peer16Problem<Half>& problem) {
  return products_of<Eigen::half>(problem);
}
std::vector<Product16> eigen_products(const Peer16Problem<BFloat16>& problem) {
  return products_of<Eigen::bfloat16>(problem);
}

// A row-major sparse matrix times a dense one of the problem's order.
Product make_eigen(const PeerProblem& problem) {
  using Sparse = Eigen::SparseMatrix<float, Eigen::RowMajor, std::int32_t>;
  using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Columns = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;
  const sparse::Csr<float>& csr = problem.elements;
  const std::vector<std::int32_t> row_begin(csr.row_begin.begin(), csr.row_begin.end());
  const auto r = std::make_shared<const Sparse>(Eigen::Map<const Sparse>(
      csr.rows, csr.cols, csr.blocks(), row_begin.data(), csr.col.data(), csr.values.data()));
  if (problem.batch_first)
    return [r, &s = problem.s](Matrix<float>& q) {
      const Eigen::Map<const Columns> in(s.elements().data(), s.cols(), s.rows());
      Eigen::Map<Columns>(q.elements().data(), q.cols(), q.rows()).noalias() = *r * in;
    };
  return [r, &s = problem.s](Matrix<float>& q) {
    const Eigen::Map<const Rows> in(s.elements().data(), s.rows(), s.cols());
    Eigen::Map<Rows>(q.elements().data(), q.rows(), q.cols()).noalias() = *r * in;
  };
}

// The plain loop that a user would write: a dot product for each stored element.
std::function<void()> eigen_gradient(const sparse::Csr<float>& elements,
                                     MatrixView<const float> q_grad, MatrixView<const float> s,
                                     std::span<float> gradients) {
  return [=, &elements] {
    using Stride = Eigen::InnerStride<>;
    using Row = Eigen::Map<const Eigen::VectorXf, 0, Stride>;
    using WholeRow = Eigen::Map<const Eigen::VectorXf>;
    const bool is_whole = q_grad.rows_are_contiguous() && s.rows_are_contiguous();
    for (std::int64_t x = 0; x < elements.rows; ++x)
      for (std::int64_t i = elements.row_begin[std::size_t(x)];
           i < elements.row_begin[std::size_t(x) + 1]; ++i) {
        const float *a = q_grad.row(x), *b = s.row(elements.col[std::size_t(i)]);
        gradients[std::size_t(i)] = is_whole ? WholeRow(a, s.cols).dot(WholeRow(b, s.cols))
                                             : Row(a, s.cols, Stride(q_grad.col_stride))
                                                   .dot(Row(b, s.cols, Stride(s.col_stride)));
      }
  };
}

}  // namespace tessera::bench
