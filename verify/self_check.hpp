#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/matrix.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::verify {

// Whether the results of a pass add up. Instead of every result, which takes the pass once more,
// sums over rows and columns are compared: with weights v and w that differ from place to place,
//   row x     sum over z of v[z] * Q[x][z]  =  sum over y of R[x][y] * (sum over z of v[z] *
//   S[y][z]) column z  sum over x of w[x] * Q[x][z]  =  sum over y of (sum over x of w[x] *
//   R[x][y]) * S[y][z]
// A wrong result shows in its row and its column, which say where it is; one in another's place
// shows, too.
//   exact      Where weights and operands are whole numbers and no result can have been rounded
//              (+1 and -1 are so), sums are taken modulo 2^64 with weights of 64 bits: any result
//              that changed by anything is seen (but for one chance in 2^64).
//   otherwise  A sum is right when it is off by no more than the bounds of its results together
//              (verify.hpp), and what its own additions round. A change that is smaller than what
//              rounding may do is not seen. Sums that are not a number are wrong.
struct Checksums {
  bool exact = false;
  std::int64_t compared = 0;  // rows and columns
  std::int64_t wrong_rows = 0, wrong_cols = 0;
  std::int64_t first_wrong_row = -1, first_wrong_col = -1;
  double worst = 0;  // largest difference in units of its bound; exact: 0 or infinite

  bool ok() const { return wrong_rows == 0 && wrong_cols == 0; }
  friend bool operator==(const Checksums&, const Checksums&) = default;
};

// out [rows][z] = matrix * in [cols][z], values of the matrix rounded to T before they are used.
// The matrix may have rows and columns beyond those of the operands, as a layer in whole blocks
// has: they are passed over. O(values + (rows + cols) * z), a small part of the product itself.
template <class T>
Checksums check_product(const sparse::Csr<float>& matrix, MatrixView<const T> in,
                        MatrixView<const T> out, const Rounding& rounding);

// gradient(x, y) = sum over z of q_grad[x][z] * s[y][z] at every place of its pattern. There is no
// way around forming a sum for every place and z, so this takes as many products as the pass, and
// compares rows only. O(values * z).
template <class T>
Checksums check_gradient(const sparse::Csr<float>& gradient, MatrixView<const T> q_grad,
                         MatrixView<const T> s, const Rounding& rounding);

// "ok: 272 checksums, all exact", "ok: 272 checksums, largest difference 0.02 of its bound", or
// "WRONG: 2 of 272 checksums; 1 rows, first 17; 1 columns, first 3".
std::string to_string(const Checksums& checksums);

// Error{CheckFailed} that names pass and group where the sums of a group do not agree.
void require_agreement(Pass pass, std::int64_t group, const Checksums& checksums);

}  // namespace tessera::verify
