#include <algorithm>
#include <vector>

#include "tessera/base/float_mode.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/verify/internal/doubts.hpp"
#include "tessera/verify/internal/factor.hpp"
#include "tessera/verify/internal/matrix_sums.hpp"
#include "tessera/verify/internal/weighted_sums.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::verify {
namespace {

using internal::ExactResult;

// The weighted sums of the columns of a matrix.
struct ColumnSums {
  explicit ColumnSums(std::int64_t cols) : sums(std::size_t(cols)), squares(std::size_t(cols)) {}
  std::vector<double> sums;
  std::vector<float> squares;
};

template <class T>
void add_strip(MatrixView<const T> matrix, Range cols, const std::vector<double>& weights,
               const std::vector<float>& weight_squares, ColumnSums& to) {
  internal::add_matrix<T>(matrix.sub({0, matrix.rows}, cols),
                          {weights.data(), weight_squares.data()}, to.sums.data() + cols.begin,
                          to.squares.data() + cols.begin);
}

// Computes the results of column z; `exact` is overwritten with [rows of the result] results.
template <class T>
void compute_column(const sparse::Csr<float>& matrix, const ProductSums& of, MatrixView<const T> in,
                    std::int64_t z, std::vector<ExactResult>& exact) {
  const std::int64_t rows = std::ssize(of.weights);
  exact.assign(std::size_t(rows), {});
  std::vector<double> column;
  for (std::int64_t y = 0; y < in.rows; ++y) column.push_back(double(float(in(y, z))));
  internal::for_each_value(matrix, of.factor, [&](std::int64_t x, std::int64_t y, float value) {
    if (x < rows && y < in.rows)
      exact[std::size_t(x)].add(double(float(T(value))), column[std::size_t(y)]);
  });
}

}  // namespace

template <class T>
Checksums check_product(const sparse::Csr<float>& matrix, const ProductSums& of,
                        MatrixView<const T> in, MatrixView<const T> out, const Rounding& rounding,
                        const MemoryDamage& damage, Executor* executor) {
  const DefaultFloatMode mode;
  constexpr std::int64_t kStrip = 64;  // columns that one thread adds up
  ColumnSums expected(out.cols), got(out.cols);
  const auto add = [&](std::int64_t i) {
    const Range cols{i / 2 * kStrip, std::min((i / 2 + 1) * kStrip, out.cols)};
    if (i % 2 == 0)
      add_strip(in, cols, of.sums, of.squares, expected);
    else
      add_strip(out, cols, of.weights, of.weight_squares, got);
  };
  const std::int64_t count = 2 * ceil_div(out.cols, kStrip);
  if (executor != nullptr)
    executor->for_each(count, add);
  else
    for (std::int64_t i = 0; i < count; ++i) add(i);

  const bool rounds = !(of.whole && of.largest_row * internal::largest_whole(in) <=
                                        internal::exact_up_to(rounding));
  internal::Doubts doubts(out.rows, out.cols, rounding, damage);
  std::vector<ExactResult> exact;  // scratch
  for (std::int64_t z = 0; z < out.cols; ++z) {
    const auto i = std::size_t(z);
    const double usual = of.scale * internal::usual_distance(of.terms, double(expected.squares[i]),
                                                             double(got.squares[i]), rounding);
    if (!doubts.compare(expected.sums[i], got.sums[i], rounds ? internal::kSuspicious * usual : 0))
      continue;
    compute_column(matrix, of, in, z, exact);
    for (std::int64_t x = 0; x < out.rows; ++x)
      doubts.recompute(double(float(out(x, z))), exact[std::size_t(x)], x, z);
  }
  return doubts.checksums();
}

template <class T>
Checksums check_product(const sparse::Csr<float>& matrix, MatrixView<const T> in,
                        MatrixView<const T> out, const Rounding& rounding,
                        const MemoryDamage& damage) {
  const DefaultFloatMode mode;
  return check_product(matrix, product_sums<T>(matrix, Factor::Matrix, out.rows, in.rows), in, out,
                       rounding, damage);
}

#define TESSERA_CHECK_PRODUCT(T)                                                              \
  template Checksums check_product(const sparse::Csr<float>&, const ProductSums&,             \
                                   MatrixView<const T>, MatrixView<const T>, const Rounding&, \
                                   const MemoryDamage&, Executor*);                           \
  template Checksums check_product(const sparse::Csr<float>&, MatrixView<const T>,            \
                                   MatrixView<const T>, const Rounding&, const MemoryDamage&);
TESSERA_CHECK_PRODUCT(float)
TESSERA_CHECK_PRODUCT(Half)
TESSERA_CHECK_PRODUCT(BFloat16)
#undef TESSERA_CHECK_PRODUCT

}  // namespace tessera::verify
