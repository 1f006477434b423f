#include "tessera/tools/sparse_fc_layer/value_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"

namespace tessera::tools {
namespace {

double largest_magnitude(const sparse::Csr<double>& matrix, const std::string& where) {
  double largest = 0;
  for (const double v : matrix.values) {
    if (!std::isfinite(v))
      throw Error(
          ErrorCode::BadInput,
          fmt::format("{}: a value is not finite, so the results could not be checked", where));
    largest = std::max(largest, std::abs(v));
  }
  return largest;
}

// Returns the largest row or column sum of |value| * 2^shift. The shift keeps the sum finite even
// if values are near the largest double.
double largest_sum(const sparse::Csr<double>& matrix, int shift) {
  std::vector<double> rows(std::size_t(matrix.rows)), cols(std::size_t(matrix.cols));
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    for (std::int64_t i = matrix.row_begin[std::size_t(r)];
         i < matrix.row_begin[std::size_t(r) + 1]; ++i) {
      const double magnitude = std::ldexp(std::abs(matrix.values[std::size_t(i)]), shift);
      rows[std::size_t(r)] += magnitude;
      cols[std::size_t(matrix.col[std::size_t(i)])] += magnitude;
    }
  double largest = 0;
  for (const double sum : rows) largest = std::max(largest, sum);
  for (const double sum : cols) largest = std::max(largest, sum);
  return largest;
}

int range_exponent(const sparse::Csr<double>& matrix, DataType type, double largest) {
  if (largest == 0) return 0;
  const int most = type == DataType::Half ? 14 : 100;  // the limit of a sum is 2^most
  const int least =
      type == DataType::Half ? -10 : -100;         // the limit of the largest value is 2^least
  const int to_one = -std::ilogb(largest);         // scales the largest value into [1, 2)
  const double sum = largest_sum(matrix, to_one);  // 1 .. 2^32
  TESSERA_ASSERT(sum >= 1 && std::isfinite(sum));
  const int room =
      to_one + most - int(std::ceil(std::log2(sum)));  // the largest exponent that the sums allow
  if (room < 0) return room;
  constexpr int kLargestExponent = 1023;  // so that the scale is a double
  return largest < std::ldexp(1.0, least) ? std::min({to_one, room, kLargestExponent}) : 0;
}

}  // namespace

RangeFit fit_range(sparse::Csr<double> matrix, DataType type, const std::string& where) {
  RangeFit fit;
  fit.exponent = range_exponent(matrix, type, largest_magnitude(matrix, where));
  fit.weights = {matrix.rows,           matrix.cols, matrix.block, std::move(matrix.row_begin),
                 std::move(matrix.col), {}};
  fit.weights.values.reserve(matrix.values.size());
  for (const double given : matrix.values) {
    const auto scaled = static_cast<float>(std::ldexp(given, fit.exponent));
    const float v = with_type(type, [scaled](auto zero) { return float(decltype(zero)(scaled)); });
    TESSERA_ASSERT(std::isfinite(v));
    fit.nonzeros += given != 0;
    fit.lost += given != 0 && v == 0;
    fit.weights.values.push_back(v);
  }
  return fit;
}

}  // namespace tessera::tools
