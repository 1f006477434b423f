#include "tessera/verify/verify.hpp"

#include <fmt/format.h>

#include <vector>

#include "tessera/base/float_mode.hpp"
#include "tessera/sparse/row_values.hpp"
#include "tessera/verify/internal/exact_result.hpp"

namespace tessera::verify {
namespace {

using internal::ExactResult;

void compare(double got, const ExactResult& exact, const Rounding& rounding, std::int64_t row,
             std::int64_t col, Verdict& verdict) {
  const double ratio = exact.excess(got, rounding);
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

void add_part(const Verdict& part, Verdict& sum) {
  const std::int64_t compared = sum.compared + part.compared, exact = sum.exact + part.exact;
  const std::int64_t wrong = sum.wrong + part.wrong;
  if (sum.compared == 0 || part.worst > sum.worst) sum = part;
  sum.compared = compared;
  sum.exact = exact;
  sum.wrong = wrong;
}

template <class T>
Verdict verify_product(const sparse::Csr<float>& matrix, MatrixView<const T> in,
                       MatrixView<const T> out, const Rounding& rounding) {
  const DefaultFloatMode mode;
  Verdict verdict;
  std::vector<ExactResult> exact;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    internal::compute_row<T>(matrix, row, in, exact);
    for (std::int64_t z = 0; z < in.cols; ++z)
      compare(double(float(out(row, z))), exact[std::size_t(z)], rounding, row, z, verdict);
  }
  return verdict;
}

template <class T>
Verdict verify_gradient(const sparse::Csr<float>& weights, const sparse::Csr<float>& gradient,
                        MatrixView<const T> q_grad, MatrixView<const T> s,
                        const Rounding& rounding) {
  const DefaultFloatMode mode;
  Verdict verdict;
  const auto values = static_cast<std::int64_t>(weights.values.size());
  if (gradient.block != weights.block || gradient.row_begin != weights.row_begin ||
      gradient.col != weights.col || gradient.values.size() != weights.values.size()) {
    verdict.compared = verdict.wrong = std::max<std::int64_t>(1, values);
    return verdict;
  }
  for (std::int64_t row = 0; row < gradient.rows; ++row)
    sparse::for_each_in_row(gradient, row, [&](std::size_t value, std::int64_t col) {
      compare(gradient.values[value], internal::compute_gradient<T>(q_grad, row, s, col), rounding,
              row, col, verdict);
    });
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
