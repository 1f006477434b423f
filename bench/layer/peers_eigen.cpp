#if !defined(__clang__)
// The headers of g++ 12 begin results with a register of any content, and warn of that themselves.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <Eigen/SparseCore>
#include <cstdint>
#include <memory>
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
