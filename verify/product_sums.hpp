#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/sparse/formats.hpp"

namespace tessera::verify {

// The product that a matrix is used for: matrix * in, or transpose(matrix) * in.
enum class Factor { Matrix, Transpose };

// The sums over a factor with which check_product predicts weighted sums of its results. They
// depend on the matrix and on the rows of operand and result, so one object serves all passes until
// a value or the pattern changes.
struct ProductSums {
  Factor factor = Factor::Matrix;
  double scale = 1;                   // the largest magnitude of a weight
  std::vector<double> weights;        // [rows of the result], random, of either sign
  std::vector<float> weight_squares;  // [rows of the result], of weight / scale
  std::vector<double> sums;           // [rows of the operand]: of weight * value
  std::vector<float> squares;         // [rows of the operand]: of (weight / scale * value)^2
  double terms = 0;                   // products of a result, averaged over the squares
  double largest_row = 0;             // largest sum of magnitudes of a row of the factor
  bool whole = true;                  // all values are whole numbers below 2^31
};

// Returns the sums of a matrix, whose values are rounded to T first; T is float, Half or BFloat16.
// Rows and columns beyond those of result and operand are left out. O(values). Thread-safe.
template <class T>
ProductSums product_sums(const sparse::Csr<float>& matrix, Factor factor, std::int64_t result_rows,
                         std::int64_t operand_rows);

// Keeps the sums of the matrices of a layer, one for each group, from the first check after a
// change to the next change. For one thread at a time.
class KeptSums {
 public:
  // Must be called after every change of a value or a pattern.
  void forget() { kept_.clear(); }

  // Returns product_sums of these arguments; the reference is valid until forget() or the next
  // call.
  template <class T>
  const ProductSums& of(const sparse::Csr<float>& matrix, Factor factor, std::int64_t group,
                        std::int64_t result_rows, std::int64_t operand_rows) {
    if (group >= std::ssize(kept_)) kept_.resize(static_cast<std::size_t>(group) + 1);
    std::optional<ProductSums>& kept =
        kept_[static_cast<std::size_t>(group)][factor == Factor::Matrix ? 0 : 1];
    if (!kept) kept = product_sums<T>(matrix, factor, result_rows, operand_rows);
    return *kept;
  }

 private:
  std::vector<std::array<std::optional<ProductSums>, 2>> kept_;  // [groups][factors]
};

}  // namespace tessera::verify
