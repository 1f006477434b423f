#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/data_type.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::verify {

// How results compare with a double-precision reference. An element is right when
//   |got - exact| <= (1 + v) * e  +  v * |exact|  +  w
//   e = (terms + partials + 2) * u * sum|a||b|  +  (terms + partials + 1) * t
// where u is the rounding unit of the sums (2^-24 float, 2^-11 half) and t their smallest subnormal
// (2^-149, 2^-24), which is what a product that underflows can be off by; v and w are those of the
// result's type (precision_of). e is what n * u * sum|a||b|, the error of n products summed in any
// order (without a term in u^2: Jeannerod and Rump, SIAM J. Matrix Anal. 34, 2013), becomes with
// partial sums and start values counted as terms; no tolerance is chosen. Results that are not a
// number are wrong.
// Where all products are whole numbers and sum|a||b| <= 1 / u, nothing is ever rounded before the
// end, in any order: then the result must be `exact` rounded to the result's type, to the bit (zero
// has two). Operands and weights of +1 and -1 are so.
struct Verdict {
  std::int64_t compared = 0;
  std::int64_t exact = 0;  // of them: compared for equality
  std::int64_t wrong = 0;
  double worst = 0;  // largest error in units of its bound; infinite where equality fails
  std::int64_t worst_row = 0, worst_col = 0;

  bool ok() const { return wrong == 0; }
};

// What the bound depends on besides the data.
struct Rounding {
  DataType result = DataType::Float;
  DataType sums = DataType::Float;
  std::int64_t partials = 1;  // how many partial sums are added up at the end
};

// Every `out` [rows][z] against matrix * in [cols][z]. O(values * z). T is float, Half or
// BFloat16; the matrix must hold the values as the layer used them: rounded to T.
template <class T>
Verdict verify_product(const sparse::Csr<float>& matrix, MatrixView<const T> in,
                       MatrixView<const T> out, const Rounding& rounding);

// Every value of `gradient` against the row of q_grad [rows][z] times the row of s [cols][z] at its
// place. The pattern of `gradient` must be that of `weights`, else all of it counts as wrong.
template <class T>
Verdict verify_gradient(const sparse::Csr<float>& weights, const sparse::Csr<float>& gradient,
                        MatrixView<const T> q_grad, MatrixView<const T> s,
                        const Rounding& rounding);

// "ok: 6144 results, largest error 0.31 of its bound", "ok: 6144 results, all exact", or what is
// wrong where.
std::string to_string(const Verdict& verdict);

}  // namespace tessera::verify
