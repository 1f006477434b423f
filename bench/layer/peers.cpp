// Products of other libraries; compiled with those that were found.
#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/layer/comparisons.hpp"
#include "tessera/sparse/random.hpp"
#ifdef TESSERA_HAS_OPENBLAS
#include <cblas.h>
#endif
#ifdef TESSERA_HAS_EIGEN
#include <Eigen/SparseCore>
#endif

namespace tessera::inline v0::bench {

std::optional<double> open_blas_seconds([[maybe_unused]] const LayerCase& c) {
#ifdef TESSERA_HAS_OPENBLAS
  const auto r = random_matrix<float>(c.x, c.y, 1), s = random_matrix<float>(c.y, c.z, 2);
  Matrix<float> q(c.x, c.z);
  openblas_set_num_threads(1);
  const auto x = static_cast<int>(c.x), y = static_cast<int>(c.y), z = static_cast<int>(c.z);
  return time_of(1, 9,
                 [&] {
                   cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, x, z, y, 1,
                               r.elements().data(), y, s.elements().data(), z, 0,
                               q.elements().data(), z);
                 })
      .median;
#else
  return std::nullopt;
#endif
}

std::optional<double> eigen_seconds([[maybe_unused]] const LayerCase& c) {
#ifdef TESSERA_HAS_EIGEN
  using Dense = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto csr = sparse::random_pattern(c.x, c.y, {1, 1}, c.density, /*seed=*/7);
  Eigen::SparseMatrix<float, Eigen::RowMajor, std::int64_t> r(c.x, c.y);
  std::vector<Eigen::Triplet<float, std::int64_t>> triplets;
  for (std::int64_t row = 0; row < c.x; ++row)
    for (auto i = csr.row_begin[std::size_t(row)]; i < csr.row_begin[std::size_t(row) + 1]; ++i)
      triplets.emplace_back(row, csr.col[std::size_t(i)], csr.values[std::size_t(i)]);
  r.setFromTriplets(triplets.begin(), triplets.end());
  const Dense s = Dense::Random(c.y, c.z);
  Dense q(c.x, c.z);
  return time_of(1, 9, [&] { q.noalias() = r * s; }).median;
#else
  return std::nullopt;
#endif
}

}  // namespace tessera::inline v0::bench
