#include "tessera/verify/self_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"

namespace tessera::verify {
namespace {

// Returns the factor of a place along one side: an odd number of 64 bits that is as good as random
// (splitmix64).
std::uint64_t mixed(std::int64_t place) {
  std::uint64_t x = (static_cast<std::uint64_t>(place) + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return (x ^ (x >> 31)) | 1u;
}

// A sum of whole numbers, modulo 2^64.
struct WholeSum {
  std::uint64_t sum = 0;
  bool whole = true;

  static std::uint64_t weight(std::int64_t place) { return mixed(place); }
  void add(double value, std::uint64_t weight) {
    const bool fits = std::abs(value) < 0x1p62 && value == std::trunc(value);  // false for NaN
    whole = whole && fits;
    if (fits) sum += static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) * weight;
  }
  void add(double value, const WholeSum& factor) { add(value, factor.sum); }
};

// A sum of any numbers, with the sum of magnitudes that its bound needs. Factors are in [1, 2).
struct RealSum {
  double sum = 0, magnitude = 0;

  static double weight(std::int64_t place) { return 1 + double(mixed(place) >> 12) * 0x1p-52; }
  void add(double value, double weight) {
    sum += value * weight;
    magnitude += std::abs(value) * weight;
  }
  void add(double value, const RealSum& factor) {
    sum += value * factor.sum;
    magnitude += std::abs(value) * factor.magnitude;
  }
};

// The counts that determine the allowed difference between the two sums of a row or column: the
// number of its results, of the products of each (at most), and of the additions of the sums
// themselves.
struct Line {
  std::int64_t terms = 0, results = 0, additions = 0;
};

// Returns the difference of two sums in units of the allowed one.
double excess(const WholeSum& expected, const WholeSum& got, const Line&, const Rounding&) {
  const bool equal = got.whole && got.sum == expected.sum;
  return equal ? 0 : std::numeric_limits<double>::infinity();
}

double excess(const RealSum& expected, const RealSum& got, const Line& line,
              const Rounding& rounding) {
  if (got.sum == expected.sum) return 0;  // avoids 0 / 0 for a line without terms
  const Precision sums = precision_of(rounding.sums), result = precision_of(rounding.result);
  const auto steps = static_cast<double>(line.terms + rounding.partials + 1);
  const double relative = (1 + result.unit) * (steps + 1) * sums.unit + result.unit;
  // Factors are below 2; the rounding of double is negligible against that of the results.
  const double absolute = 2 * double(line.results) * (2 * steps * sums.smallest + result.smallest);
  const double own = double(line.additions) * 0x1p-52 * (expected.magnitude + got.magnitude);
  const double allowed = relative * expected.magnitude + absolute + own;
  return std::abs(got.sum - expected.sum) / allowed;
}

// Counts the comparison of one row or column.
void note(double ratio, std::int64_t place, std::int64_t& wrong, std::int64_t& first,
          Checksums& checksums) {
  ++checksums.compared;
  const bool is_wrong = !(ratio <= 1.0);  // true for NaN
  if (is_wrong && wrong == 0) first = place;
  wrong += is_wrong;
  checksums.worst = is_wrong ? std::max(checksums.worst, std::isnan(ratio) ? HUGE_VAL : ratio)
                             : std::max(checksums.worst, ratio);
}

// Calls visit(row, col, index of the value) for every stored element inside [rows][cols].
template <class Visit>
void for_each_element(const sparse::Csr<float>& matrix, std::int64_t rows, std::int64_t cols,
                      Visit&& visit) {
  const BlockShape block = matrix.block;
  for (std::int64_t block_row = 0; block_row < matrix.block_rows(); ++block_row)
    for (std::int64_t b = matrix.row_begin[std::size_t(block_row)];
         b < matrix.row_begin[std::size_t(block_row) + 1]; ++b)
      for (std::int64_t i = 0; i < block.area(); ++i) {
        const std::int64_t row = block_row * block.rows + i / block.cols;
        const std::int64_t col = matrix.col[std::size_t(b)] * block.cols + i % block.cols;
        if (row < rows && col < cols) visit(row, col, std::size_t(b * block.area() + i));
      }
}

template <class T>
double rounded(float value) {
  return double(float(T(value)));
}
template <class T>
double number(T value) {
  return double(float(value));
}

bool is_whole(double value) { return value == std::trunc(value); }  // false for NaN

// Returns the largest magnitude, or infinity if an element is not a whole number.
template <class T>
double largest_whole(MatrixView<const T> matrix) {
  double largest = 0;
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    for (std::int64_t c = 0; c < matrix.cols; ++c) {
      const double value = number(matrix(r, c));
      largest = is_whole(value) ? std::max(largest, std::abs(value)) : HUGE_VAL;
    }
  return largest;
}

// Returns the magnitude up to which whole results are rounded neither in sums nor at the end.
double exact_up_to(const Rounding& rounding) {
  return 1 / std::max(precision_of(rounding.sums).unit, precision_of(rounding.result).unit);
}

template <class T>
bool is_exact(const sparse::Csr<float>& matrix, MatrixView<const T> in, std::int64_t rows,
              const Rounding& rounding) {
  const double largest = largest_whole(in), limit = exact_up_to(rounding);
  if (!(largest <= limit)) return false;
  std::vector<double> row_sums(std::size_t(rows), 0.0);
  bool whole = true;
  for_each_element(matrix, rows, in.rows, [&](std::int64_t r, std::int64_t, std::size_t i) {
    const double value = rounded<T>(matrix.values[i]);
    whole = whole && is_whole(value);
    row_sums[std::size_t(r)] += std::abs(value);
  });
  return whole && std::all_of(row_sums.begin(), row_sums.end(),
                              [&](double sum) { return sum * largest <= limit; });
}

// Returns the checksum of each row of a matrix.
template <class Sum, class T>
std::vector<Sum> row_sums(MatrixView<const T> matrix) {
  std::vector<Sum> sums(std::size_t(matrix.rows));
  for (std::int64_t c = 0; c < matrix.cols; ++c) {
    const auto weight = Sum::weight(c);
    for (std::int64_t r = 0; r < matrix.rows; ++r)
      sums[std::size_t(r)].add(number(matrix(r, c)), weight);
  }
  return sums;
}

template <class Sum, class T>
Checksums compare_product(const sparse::Csr<float>& matrix, MatrixView<const T> in,
                          MatrixView<const T> out, const Rounding& rounding) {
  std::vector<Sum> expected_rows(std::size_t(out.rows)), column_sums(std::size_t(in.rows));
  std::vector<std::int64_t> terms(std::size_t(out.rows));
  const std::vector<Sum> of_in = row_sums<Sum>(in), got_rows = row_sums<Sum>(out);
  for_each_element(matrix, out.rows, in.rows, [&](std::int64_t x, std::int64_t y, std::size_t i) {
    const double value = rounded<T>(matrix.values[i]);
    expected_rows[std::size_t(x)].add(value, of_in[std::size_t(y)]);
    column_sums[std::size_t(y)].add(value, Sum::weight(x));
    ++terms[std::size_t(x)];
  });
  Checksums checksums;
  const std::int64_t additions = in.rows + out.rows + in.cols;
  for (std::int64_t x = 0; x < out.rows; ++x) {
    const auto r = std::size_t(x);
    note(excess(expected_rows[r], got_rows[r], {terms[r], out.cols, additions}, rounding), x,
         checksums.wrong_rows, checksums.first_wrong_row, checksums);
  }
  const std::int64_t most_terms = terms.empty() ? 0 : *std::max_element(terms.begin(), terms.end());
  for (std::int64_t z = 0; z < out.cols; ++z) {
    Sum expected, got;
    for (std::int64_t y = 0; y < in.rows; ++y)
      expected.add(number(in(y, z)), column_sums[std::size_t(y)]);
    for (std::int64_t x = 0; x < out.rows; ++x) got.add(number(out(x, z)), Sum::weight(x));
    note(excess(expected, got, {most_terms, out.rows, additions}, rounding), z,
         checksums.wrong_cols, checksums.first_wrong_col, checksums);
  }
  return checksums;
}

template <class Sum, class T>
Checksums compare_gradient(const sparse::Csr<float>& gradient, MatrixView<const T> q_grad,
                           MatrixView<const T> s, const Rounding& rounding) {
  std::vector<Sum> expected(std::size_t(q_grad.rows)), got(std::size_t(q_grad.rows));
  std::vector<std::int64_t> results(std::size_t(q_grad.rows));
  for_each_element(gradient, q_grad.rows, s.rows,
                   [&](std::int64_t x, std::int64_t y, std::size_t i) {
                     const auto weight = Sum::weight(y);
                     for (std::int64_t z = 0; z < s.cols; ++z)
                       expected[std::size_t(x)].add(number(q_grad(x, z)) * number(s(y, z)), weight);
                     got[std::size_t(x)].add(double(gradient.values[i]), weight);
                     ++results[std::size_t(x)];
                   });
  Checksums checksums;
  for (std::int64_t x = 0; x < q_grad.rows; ++x) {
    const auto r = std::size_t(x);
    const Line line{s.cols, results[r], results[r] * s.cols};
    note(excess(expected[r], got[r], line, rounding), x, checksums.wrong_rows,
         checksums.first_wrong_row, checksums);
  }
  return checksums;
}

}  // namespace

template <class T>
Checksums check_product(const sparse::Csr<float>& matrix, MatrixView<const T> in,
                        MatrixView<const T> out, const Rounding& rounding) {
  const bool exact = is_exact(matrix, in, out.rows, rounding);
  Checksums checksums = exact ? compare_product<WholeSum>(matrix, in, out, rounding)
                              : compare_product<RealSum>(matrix, in, out, rounding);
  checksums.exact = exact;
  return checksums;
}

template <class T>
Checksums check_gradient(const sparse::Csr<float>& gradient, MatrixView<const T> q_grad,
                         MatrixView<const T> s, const Rounding& rounding) {
  const double largest = largest_whole(q_grad) * std::max(1.0, largest_whole(s));
  const bool exact = largest * double(s.cols) <= exact_up_to(rounding);
  Checksums checksums = exact ? compare_gradient<WholeSum>(gradient, q_grad, s, rounding)
                              : compare_gradient<RealSum>(gradient, q_grad, s, rounding);
  checksums.exact = exact;
  return checksums;
}

std::string to_string(const Checksums& c) {
  if (c.ok() && c.exact) return fmt::format("ok: {} checksums, all exact", c.compared);
  if (c.ok())
    return fmt::format("ok: {} checksums, largest difference {:.2f} of its bound", c.compared,
                       c.worst);
  std::string text =
      fmt::format("WRONG: {} of {} checksums", c.wrong_rows + c.wrong_cols, c.compared);
  if (c.wrong_rows > 0) text += fmt::format("; {} rows, first {}", c.wrong_rows, c.first_wrong_row);
  if (c.wrong_cols > 0)
    text += fmt::format("; {} columns, first {}", c.wrong_cols, c.first_wrong_col);
  return text;
}

void require_agreement(Pass pass, std::int64_t group, const Checksums& checksums) {
  if (checksums.ok()) return;
  throw Error(ErrorCode::CheckFailed,
              fmt::format("self-check of {}, group {}: {}; results cannot be trusted, run it again",
                          to_string(pass), group, to_string(checksums)));
}

void add_group(Pass pass, std::int64_t group, const Checksums& of_group, Checksums& all) {
  if (group == 0) all = {};
  all.exact = of_group.exact && (group == 0 || all.exact);
  all.compared += of_group.compared;
  all.wrong_rows += of_group.wrong_rows;
  all.wrong_cols += of_group.wrong_cols;
  all.worst = std::max(all.worst, of_group.worst);
  if (of_group.ok()) return;
  all.first_wrong_row = of_group.first_wrong_row;
  all.first_wrong_col = of_group.first_wrong_col;
  require_agreement(pass, group, of_group);
}

#define TESSERA_SELF_CHECK(T)                                                       \
  template Checksums check_product(const sparse::Csr<float>&, MatrixView<const T>,  \
                                   MatrixView<const T>, const Rounding&);           \
  template Checksums check_gradient(const sparse::Csr<float>&, MatrixView<const T>, \
                                    MatrixView<const T>, const Rounding&);
TESSERA_SELF_CHECK(float)
TESSERA_SELF_CHECK(Half)
TESSERA_SELF_CHECK(BFloat16)
#undef TESSERA_SELF_CHECK

}  // namespace tessera::verify
