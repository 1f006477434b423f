#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/product_sums.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::verify {

// The check of the results of a pass, in two stages.
//
// The first stage looks for a reason to doubt. One is memory that changed during the pass, which a
// machine with tiles reports (device::Engine::watch_memory). The other is a sum of results that
// disagrees with the same sum of the operands: with random weights w of either sign,
//   column z:   sum over x of w[x] * Q[x][z]
//                 = sum over y of (sum over x of w[x] * R[x][y]) * S[y][z]
// The sums over the weights R are the same for every pass (ProductSums), so a check reads each
// operand and each result once and does nothing for each value of R.
// If weights and operands are whole numbers and no result can have been rounded (+1 and -1 are such
// data), both sides must be equal. Otherwise they may differ by a few times the distance that
// rounding usually causes for these values, which is far less than the sum of all bounds.
//
// The second stage computes the results in doubt in double, each with its own bound (verify.hpp):
// those of a suspicious column, or all of them if memory changed. Only a result beyond its bound is
// wrong, so right results never fail.
struct Checksums {
  bool exact = false;              // every sum was compared for equality
  std::int64_t compared = 0;       // sums
  std::int64_t recomputed = 0;     // results of the second stage
  std::int64_t damaged = 0;        // slots of tile memory that changed between two steps
  std::string first_failure = {};  // why the pass was repeated (repair.hpp); empty: it was not
  std::string first_damage = {};   // the first of them: "tile 3, \"partial sums\""
  std::int64_t wrong_rows = 0, wrong_cols = 0;
  std::int64_t first_wrong_row = -1, first_wrong_col = -1;  // of the first wrong result
  double worst = 0;  // largest difference: of a sum in units of what is suspicious, of a result
                     // that was recomputed in units of its bound

  bool ok() const { return wrong_rows == 0 && wrong_cols == 0; }
  friend bool operator==(const Checksums&, const Checksums&) = default;
};

// Memory that changed during a pass, as a caller that watched it reports it to the check.
struct MemoryDamage {
  std::int64_t slots = 0;
  std::string first = {};
};

// Checks that out [rows][z] = factor * in [cols][z]; the factor is the matrix or its transpose, as
// in `of`, whose sums must be those of this matrix, T and these rows. T is float, Half or BFloat16;
// values of the matrix are rounded to T before they are used. The matrix may have more rows and
// columns than the operands, as a layer in whole blocks has; these are skipped.
// O((rows + cols) * z), and O(values) in double for each column in doubt. Sums of columns are
// computed on the threads of the executor; null: on the calling one. Thread-safe.
template <class T>
Checksums check_product(const sparse::Csr<float>& matrix, const ProductSums& of,
                        MatrixView<const T> in, MatrixView<const T> out, const Rounding& rounding,
                        const MemoryDamage& damage = {}, Executor* executor = nullptr);

// Does the same for out = matrix * in and computes the sums of the matrix first, in O(values).
template <class T>
Checksums check_product(const sparse::Csr<float>& matrix, MatrixView<const T> in,
                        MatrixView<const T> out, const Rounding& rounding,
                        const MemoryDamage& damage = {});

// The rows of blocks whose gradients check_gradient sums up. A place of its own needs a product of
// its own for every z, so the sums of all elements take as many products as the pass.
//   All     every row: a pass whose memory nobody watched
//   Sample  one row in 128 for elements, one row of blocks in 64: a pass whose memory was watched,
//           so that only an error in computing is left to find
enum class GradientRows { All, Sample };

// Checks that gradient(x, y) = sum over z of q_grad[x][z] * s[y][z] at every place of a pattern;
// `gradient` has as many numbers as pattern.values, in their order.
// The sums are those of a row of blocks: with weights u, v of the rows and columns of a block,
//   sum over blocks of w * (sum over i, j of u[i] * v[j] * gradient(i, j))
//     = sum over blocks of w * sum over z of (sum over i of u[i] * q_grad[i][z])
//                                          * (sum over j of v[j] * s[j][z])
// O(blocks * z + (rows + cols) * z), blocks of the compared rows. Thread-safe.
template <class T>
Checksums check_gradient(const sparse::Csr<float>& pattern, std::span<const float> gradient,
                         MatrixView<const T> q_grad, MatrixView<const T> s,
                         const Rounding& rounding, GradientRows compared = GradientRows::All,
                         const MemoryDamage& damage = {});

// Returns the outcome as text: "ok: 272 checksums, all exact", "ok: 272 checksums, largest
// difference 0.42 of its bound", or "WRONG: 2 rows, first 17; 1 columns, first 3; 768 results
// recomputed". Damaged memory is named in either case.
std::string to_string(const Checksums& checksums);

// Throws Error{CheckFailed}, which names the pass and the group, unless checksums.ok().
void require_agreement(Pass pass, std::int64_t group, const Checksums& checksums);

// Adds the checksums of one part of a pass to those of the parts before it. `all` has no sums at
// first. Places are named with the name of the part, if it has one: "device 2, tile 3".
void add_part(const Checksums& of_part, Checksums& all, std::string_view name = {});

// Adds the checksums of one group of a pass to those of the groups before it; `all` is overwritten
// for group 0. Error{CheckFailed} as require_agreement, and `all` then holds this group too.
void add_group(Pass pass, std::int64_t group, const Checksums& of_group, Checksums& all);

}  // namespace tessera::verify
