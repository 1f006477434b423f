#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/matrix.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::verify {

// The comparison of the results of a pass with checksums. A comparison of every result would cost
// as much as the pass; instead, sums over rows and columns are compared. With checksum factors v
// and w that differ from place to place,
//   row x:     sum over z of v[z] * Q[x][z]
//                = sum over y of R[x][y] * (sum over z of v[z] * S[y][z])
//   column z:  sum over x of w[x] * Q[x][z]
//                = sum over y of (sum over x of w[x] * R[x][y]) * S[y][z]
// A wrong result changes the sums of its row and its column, which together give its place. A
// result that is stored in the place of another is found too.
//   exact      If weights and operands are whole numbers and no result can have been rounded (+1
//              and -1 are such data), sums are taken modulo 2^64 with factors of 64 bits. Every
//              change of a result is found, except with a chance of one in 2^64.
//   otherwise  A sum is right if it is off by no more than the sum of the bounds of its results
//              (verify.hpp) and the rounding of its own additions. A change that is smaller than
//              the allowed rounding is not found. Sums that are not a number are wrong.
struct Checksums {
  bool exact = false;
  std::int64_t compared = 0;  // rows and columns
  std::int64_t wrong_rows = 0, wrong_cols = 0;
  std::int64_t first_wrong_row = -1, first_wrong_col = -1;
  double worst = 0;  // largest difference in units of its bound; exact: 0 or infinite

  bool ok() const { return wrong_rows == 0 && wrong_cols == 0; }
  friend bool operator==(const Checksums&, const Checksums&) = default;
};

// Checks that out [rows][z] = matrix * in [cols][z]. T is float, Half or BFloat16; values of the
// matrix are rounded to T before they are used. The matrix may have more rows and columns than the
// operands, as a layer in whole blocks has; these are skipped. O(values + (rows + cols) * z), a
// small part of the product itself. Thread-safe.
template <class T>
Checksums check_product(const sparse::Csr<float>& matrix, MatrixView<const T> in,
                        MatrixView<const T> out, const Rounding& rounding);

// Checks that gradient(x, y) = sum over z of q_grad[x][z] * s[y][z] at every place of its pattern.
// Every place and every z needs a product of its own, so the check takes as many products as the
// pass. Only rows are compared. O(values * z). Thread-safe.
template <class T>
Checksums check_gradient(const sparse::Csr<float>& gradient, MatrixView<const T> q_grad,
                         MatrixView<const T> s, const Rounding& rounding);

// Returns the outcome as text: "ok: 272 checksums, all exact", "ok: 272 checksums, largest
// difference 0.02 of its bound", or "WRONG: 2 of 272 checksums; 1 rows, first 17; 1 columns, first
// 3".
std::string to_string(const Checksums& checksums);

// Throws Error{CheckFailed}, which names the pass and the group, unless checksums.ok().
void require_agreement(Pass pass, std::int64_t group, const Checksums& checksums);

// Adds the checksums of one group of a pass to those of the groups before it; `all` is overwritten
// for group 0. Error{CheckFailed} as require_agreement, and `all` then holds this group too.
void add_group(Pass pass, std::int64_t group, const Checksums& of_group, Checksums& all);

}  // namespace tessera::verify
