#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/data_type.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::verify {

// The comparison of results with a double-precision reference. An element is right if
//   |got - exact| <= (1 + v) * e  +  v * |exact|  +  w
//   e = (terms + partials + 2) * u * sum|a||b|  +  (terms + partials + 1) * t
// where u is the rounding unit of the sums (2^-24 float, 2^-11 half), and t is their smallest
// subnormal (2^-149, 2^-24), which bounds the error of a product that underflows. v and w are the
// unit and the smallest subnormal of the result's type (precision_of). The error of n products that
// are summed in any order is at most n * u * sum|a||b| (without a term in u^2: Jeannerod and Rump,
// SIAM J. Matrix Anal. 34, 2013); e is that bound with partial sums and start values counted as
// terms. So the bound contains no chosen tolerance. A result that is infinite or not a number is
// wrong, unless the exact one, or a partial sum, may be beyond the range of its type or an operand
// is no number. If all products are whole numbers and sum|a||b| <= 1 / u, no sum is rounded before
// the end, in any order. The result must then equal `exact` rounded to the result's type in every
// bit, except that both zeros are right. Operands and weights of +1 and -1 are such data.
struct Verdict {
  std::int64_t compared = 0;  // results
  std::int64_t exact = 0;     // of the compared: tested for equality
  std::int64_t wrong = 0;
  double worst = 0;  // largest error in units of its bound; infinite if a test for equality failed
  std::int64_t worst_row = 0, worst_col = 0;

  bool ok() const { return wrong == 0; }
};

// Adds the verdict on one part of some results to that on the parts before it. `sum` has compared
// nothing at first. The worst result keeps its place in its part.
void add_part(const Verdict& part, Verdict& sum);

// The properties of a layer that determine the bound, besides the data.
struct Rounding {
  DataType result = DataType::Float;
  DataType sums = DataType::Float;
  std::int64_t partials = 1;  // the number of partial sums that are added up at the end
};

// Compares every element of `out` [rows][z] with matrix * in [cols][z]. T is float, Half or
// BFloat16. The values of the matrix must be those that the layer used, rounded to T.
// O(values * z). Thread-safe.
template <class T>
Verdict verify_product(const sparse::Csr<float>& matrix, MatrixView<const T> in,
                       MatrixView<const T> out, const Rounding& rounding);

// Compares every value of `gradient` with the product of the row of q_grad [rows][z] and the row of
// s [cols][z] at its place. If the pattern of `gradient` is not that of `weights`, all values count
// as wrong. O(values * z). Thread-safe.
template <class T>
Verdict verify_gradient(const sparse::Csr<float>& weights, const sparse::Csr<float>& gradient,
                        MatrixView<const T> q_grad, MatrixView<const T> s,
                        const Rounding& rounding);

// Returns the verdict as text: "ok: 6144 results, largest error 0.31 of its bound", "ok: 6144
// results, all exact", or the number of wrong results with the place of the worst.
std::string to_string(const Verdict& verdict);

}  // namespace tessera::verify
