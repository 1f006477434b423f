#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/sparse/row_values.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::verify::internal {

// One result in double precision, with the figures that its bound (verify.hpp) needs.
struct ExactResult {
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

  // Returns the error of `got` in units of the allowed one; infinite if a test for equality failed.
  double excess(double got, const Rounding& rounding) const {
    if (never_rounds(rounding))
      return got == rounded(rounding.result) ? 0 : std::numeric_limits<double>::infinity();
    if (!std::isfinite(got) && may_overflow(got, rounding)) return 0;
    return std::abs(got - sum) / bound(rounding);
  }

 private:
  // The error of the sum before it is rounded to the type of the result.
  double sum_error(const Rounding& rounding) const {
    const Precision sums = precision_of(rounding.sums);
    const auto steps = static_cast<double>(terms + rounding.partials + 1);
    return (steps + 1) * sums.unit * magnitude + steps * sums.smallest;
  }
  double bound(const Rounding& rounding) const {
    const Precision result = precision_of(rounding.result);
    return (1 + result.unit) * sum_error(rounding) + result.unit * std::abs(sum) + result.smallest;
  }
  // Returns true if a partial sum may be beyond the range of its type or an operand is no number,
  // after which everything infinite or undefined is right, or if the result is infinite and may be
  // beyond that of its own.
  bool may_overflow(double got, const Rounding& rounding) const {
    if (!(magnitude + sum_error(rounding) <= largest_finite(rounding.sums))) return true;
    return std::isinf(got) && std::signbit(got) == std::signbit(sum) &&
           std::abs(sum) + bound(rounding) > largest_finite(rounding.result);
  }
  static double largest_finite(DataType type) {
    return with_type(type, [](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_same_v<T, Half>)
        return 65504.0;
      else if constexpr (std::is_same_v<T, BFloat16>)
        return 0x1.fep127;
      else
        return 0x1.fffffep127;
    });
  }
  double rounded(DataType type) const {
    return with_type(type, [&](auto zero) { return double(float(decltype(zero)(float(sum)))); });
  }
};

// Computes the results of one row of matrix * in; `exact` is overwritten with [z] results. Columns
// of the matrix beyond the rows of `in` are skipped.
template <class T>
void compute_row(const sparse::Csr<float>& matrix, std::int64_t row, MatrixView<const T> in,
                 std::vector<ExactResult>& exact) {
  exact.assign(std::size_t(in.cols), {});
  sparse::for_each_in_row(matrix, row, [&](std::size_t value, std::int64_t col) {
    if (col >= in.rows) return;
    const double r = double(float(T(matrix.values[value])));
    for (std::int64_t z = 0; z < in.cols; ++z)
      exact[std::size_t(z)].add(r, double(float(in(col, z))));
  });
}

// Computes the gradient of one place: the product of two rows.
template <class T>
ExactResult compute_gradient(MatrixView<const T> q_grad, std::int64_t row, MatrixView<const T> s,
                             std::int64_t col) {
  ExactResult exact;
  for (std::int64_t z = 0; z < s.cols; ++z)
    exact.add(double(float(q_grad(row, z))), double(float(s(col, z))));
  return exact;
}

}  // namespace tessera::verify::internal
