#include "tessera/verify/product_sums.hpp"

#include <algorithm>
#include <cmath>

#include "tessera/base/float_mode.hpp"
#include "tessera/base/half.hpp"
#include "tessera/verify/internal/factor.hpp"
#include "tessera/verify/internal/weighted_sums.hpp"

namespace tessera::verify {
namespace {

// The products of a row of the factor.
struct FactorRow {
  double terms = 0, magnitude = 0, squares = 0;

  void add(double value) {
    terms += 1;
    magnitude += std::abs(value);
    squares += value * value;
  }
};

// The rows of the factor are rows of the matrix. What belongs to one row is added up in registers.
template <class T>
void add_rows(const sparse::Csr<float>& matrix, ProductSums& of, std::vector<FactorRow>& rows) {
  internal::for_each_row(matrix, [&](std::int64_t x, auto&& values) {
    if (x >= std::ssize(rows)) return;
    const double weight = of.weights[std::size_t(x)];
    const float weight_square = of.weight_squares[std::size_t(x)];
    FactorRow row;
    bool whole = of.whole;
    values([&](std::int64_t y, float stored) {
      if (y >= std::ssize(of.sums)) return;
      const double value = internal::number(T(stored));
      of.sums[std::size_t(y)] += weight * value;
      of.squares[std::size_t(y)] += weight_square * float(value * value);
      row.add(value);
      whole = whole && internal::is_whole(value);
    });
    rows[std::size_t(x)] = row;
    of.whole = whole;
  });
}

// The rows of the factor are columns of the matrix.
template <class T>
void add_columns(const sparse::Csr<float>& matrix, ProductSums& of, std::vector<FactorRow>& rows) {
  internal::for_each_row(matrix, [&](std::int64_t y, auto&& values) {
    if (y >= std::ssize(of.sums)) return;
    double sum = 0;
    float squares = 0;
    bool whole = of.whole;
    values([&](std::int64_t x, float stored) {
      if (x >= std::ssize(rows)) return;
      const double value = internal::number(T(stored));
      sum += of.weights[std::size_t(x)] * value;
      squares += of.weight_squares[std::size_t(x)] * float(value * value);
      rows[std::size_t(x)].add(value);
      whole = whole && internal::is_whole(value);
    });
    of.sums[std::size_t(y)] = sum;
    of.squares[std::size_t(y)] = squares;
    of.whole = whole;
  });
}

// Returns the terms of a result, each row counted by the squares of its products.
double usual_terms(const std::vector<FactorRow>& rows, const std::vector<float>& weight_squares) {
  double terms = 0, all = 0;
  for (std::size_t x = 0; x < rows.size(); ++x) {
    terms += double(weight_squares[x]) * rows[x].squares * rows[x].terms;
    all += double(weight_squares[x]) * rows[x].squares;
  }
  return all > 0 ? terms / all : 0;
}

}  // namespace

template <class T>
ProductSums product_sums(const sparse::Csr<float>& matrix, Factor factor, std::int64_t result_rows,
                         std::int64_t operand_rows) {
  const DefaultFloatMode mode;
  const int bits = internal::weight_bits(result_rows);
  ProductSums of;
  of.factor = factor;
  of.scale = std::ldexp(1.0, bits);
  of.weights = internal::weights_of(result_rows, bits);
  for (const double weight : of.weights)
    of.weight_squares.push_back(float(weight * weight / (of.scale * of.scale)));
  of.sums.resize(std::size_t(operand_rows));
  of.squares.resize(std::size_t(operand_rows));
  std::vector<FactorRow> rows(of.weights.size());
  if (factor == Factor::Matrix)
    add_rows<T>(matrix, of, rows);
  else
    add_columns<T>(matrix, of, rows);
  for (const FactorRow& row : rows) of.largest_row = std::max(of.largest_row, row.magnitude);
  of.terms = usual_terms(rows, of.weight_squares);
  return of;
}

template ProductSums product_sums<float>(const sparse::Csr<float>&, Factor, std::int64_t,
                                         std::int64_t);
template ProductSums product_sums<Half>(const sparse::Csr<float>&, Factor, std::int64_t,
                                        std::int64_t);
template ProductSums product_sums<BFloat16>(const sparse::Csr<float>&, Factor, std::int64_t,
                                            std::int64_t);

}  // namespace tessera::verify
