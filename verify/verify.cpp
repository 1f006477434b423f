#include "tessera/verify/verify.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tessera::verify {
namespace {

// One exact result with the figures that its bound needs.
struct Exact {
  double sum = 0, magnitude = 0;
  std::int64_t terms = 0;
  bool whole = true;  // all products are whole numbers

  void add(double a, double b) {
    const double product = a * b;
    sum += product;
    magnitude += std::abs(product);
    whole = whole && product == std::trunc(product);
    ++terms;
  }
  bool never_rounds(const Rounding& rounding) const {
    return whole && magnitude * precision_of(rounding.sums).unit <= 1;
  }
  double bound(const Rounding& rounding) const {
    const Precision sums = precision_of(rounding.sums), result = precision_of(rounding.result);
    const auto steps = static_cast<double>(terms + rounding.partials + 1);
    const double error = (steps + 1) * sums.unit * magnitude + steps * sums.smallest;
    return (1 + result.unit) * error + result.unit * std::abs(sum) + result.smallest;
  }
};

double rounded(double value, DataType type) {
  return with_type(type, [&](auto zero) { return double(float(decltype(zero)(float(value)))); });
}

// Returns the error in units of the allowed one.
double excess(double got, const Exact& exact, const Rounding& rounding) {
  if (!exact.never_rounds(rounding)) return std::abs(got - exact.sum) / exact.bound(rounding);
  const bool equal = got == rounded(exact.sum, rounding.result);
  return equal ? 0 : std::numeric_limits<double>::infinity();
}

void compare(double got, const Exact& exact, const Rounding& rounding, std::int64_t row,
             std::int64_t col, Verdict& verdict) {
  const double ratio = excess(got, exact, rounding);
  ++verdict.compared;
  verdict.exact += exact.never_rounds(rounding);
  const bool wrong = !(ratio <= 1.0);  // true for NaN
  verdict.wrong += wrong;
  if (ratio > verdict.worst || (wrong && verdict.wrong == 1)) {
    verdict.worst = ratio;
    verdict.worst_row = row;
    verdict.worst_col = col;
  }
}

}  // namespace

template <class T>
Verdict verify_product(const sparse::Csr<float>& matrix, MatrixView<const T> in,
                       MatrixView<const T> out, const Rounding& rounding) {
  Verdict verdict;
  const BlockShape block = matrix.block;
  std::vector<Exact> exact;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    exact.assign(std::size_t(in.cols), {});
    const auto block_row = std::size_t(row / block.rows);
    for (std::int64_t b = matrix.row_begin[block_row]; b < matrix.row_begin[block_row + 1]; ++b)
      for (std::int64_t j = 0; j < block.cols; ++j) {
        const std::int64_t value = b * block.area() + row % block.rows * block.cols + j;
        const std::int64_t col = matrix.col[std::size_t(b)] * block.cols + j;
        const double r = matrix.values[std::size_t(value)];
        for (std::int64_t z = 0; z < in.cols; ++z)
          exact[std::size_t(z)].add(r, double(float(in(col, z))));
      }
    for (std::int64_t z = 0; z < in.cols; ++z)
      compare(double(float(out(row, z))), exact[std::size_t(z)], rounding, row, z, verdict);
  }
  return verdict;
}

template <class T>
Verdict verify_gradient(const sparse::Csr<float>& weights, const sparse::Csr<float>& gradient,
                        MatrixView<const T> q_grad, MatrixView<const T> s,
                        const Rounding& rounding) {
  Verdict verdict;
  const auto values = static_cast<std::int64_t>(weights.values.size());
  if (gradient.block != weights.block || gradient.row_begin != weights.row_begin ||
      gradient.col != weights.col || gradient.values.size() != weights.values.size()) {
    verdict.compared = verdict.wrong = std::max<std::int64_t>(1, values);
    return verdict;
  }
  const BlockShape block = weights.block;
  for (std::int64_t block_row = 0; block_row < weights.block_rows(); ++block_row)
    for (std::int64_t b = weights.row_begin[std::size_t(block_row)];
         b < weights.row_begin[std::size_t(block_row) + 1]; ++b)
      for (std::int64_t i = 0; i < block.area(); ++i) {
        const std::int64_t row = block_row * block.rows + i / block.cols;
        const std::int64_t col = weights.col[std::size_t(b)] * block.cols + i % block.cols;
        Exact exact;
        for (std::int64_t z = 0; z < s.cols; ++z)
          exact.add(double(float(q_grad(row, z))), double(float(s(col, z))));
        compare(gradient.values[std::size_t(b * block.area() + i)], exact, rounding, row, col,
                verdict);
      }
  return verdict;
}

std::string to_string(const Verdict& verdict) {
  if (verdict.ok() && verdict.exact > 0 && verdict.exact == verdict.compared)
    return fmt::format("ok: {} results, all exact", verdict.compared);
  if (verdict.ok())
    return fmt::format("ok: {} results, largest error {:.2f} of its bound", verdict.compared,
                       verdict.worst);
  return fmt::format(
      "WRONG: {} of {} results, the worst at row {}, column {}: {:.3g} times its bound",
      verdict.wrong, verdict.compared, verdict.worst_row, verdict.worst_col, verdict.worst);
}

#define TESSERA_VERIFY(T)                                                                \
  template Verdict verify_product(const sparse::Csr<float>&, MatrixView<const T>,        \
                                  MatrixView<const T>, const Rounding&);                 \
  template Verdict verify_gradient(const sparse::Csr<float>&, const sparse::Csr<float>&, \
                                   MatrixView<const T>, MatrixView<const T>, const Rounding&);
TESSERA_VERIFY(float)
TESSERA_VERIFY(Half)
TESSERA_VERIFY(BFloat16)
#undef TESSERA_VERIFY

}  // namespace tessera::verify
