#include "tessera/sparse/fit_range.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"

namespace tessera::sparse {

double largest_of(DataType type) {
  switch (type) {
    case DataType::Half:
      return 65504;
    case DataType::BFloat16:
      return 0x1.FEp127;
    case DataType::Float:
      break;
  }
  return std::numeric_limits<float>::max();
}

void require_in_range(const Csr<double>& matrix, DataType type, const std::string& where) {
  with_type(type, [&]<class T>(T) {
    for (const double value : matrix.values)
      if (!std::isfinite(float(T(float(value)))))
        throw Error(ErrorCode::BadInput,
                    fmt::format("{}: a value is {}; {} holds -{} to {}; give finite values in this "
                                "range{}",
                                where, value, to_string(type), largest_of(type), largest_of(type),
                                type == DataType::Half ? " or use the type float" : ""));
  });
}

double largest_magnitude(const Csr<double>& matrix, const std::string& where) {
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

// The shift keeps the sums finite even if values are near the largest double.
MagnitudeSums magnitude_sums(const Csr<double>& matrix, int shift) {
  MagnitudeSums sums{.columns = std::vector<double>(std::size_t(matrix.cols))};
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    double row = 0;
    for (std::int64_t i = matrix.row_begin[std::size_t(r)];
         i < matrix.row_begin[std::size_t(r) + 1]; ++i) {
      const double magnitude = std::ldexp(std::abs(matrix.values[std::size_t(i)]), shift);
      row += magnitude;
      sums.columns[std::size_t(matrix.col[std::size_t(i)])] += magnitude;
    }
    sums.largest_row = std::max(sums.largest_row, row);
  }
  return sums;
}

int shift_of(double largest) { return largest == 0 ? 0 : -std::ilogb(largest); }

int range_exponent(DataType type, double largest, double largest_sum) {
  if (largest == 0) return 0;
  const int most = type == DataType::Half ? 14 : 100;  // the limit of a sum is 2^most
  const int least =
      type == DataType::Half ? -10 : -100;  // the limit of the largest value is 2^least
  const int to_one = shift_of(largest);     // scales the largest value into [1, 2)
  TESSERA_ASSERT(largest_sum >= 1 && std::isfinite(largest_sum));  // 1 .. 2^32
  // The largest exponent that the sums allow.
  const int room = to_one + most - int(std::ceil(std::log2(largest_sum)));
  if (room < 0) return room;
  constexpr int kLargestExponent = 1023;  // so that the scale is a double
  return largest < std::ldexp(1.0, least) ? std::min({to_one, room, kLargestExponent}) : 0;
}

RangeFit fit_range(Csr<double> matrix, DataType type, const std::string& where) {
  const double largest = largest_magnitude(matrix, where);
  const MagnitudeSums sums = magnitude_sums(matrix, shift_of(largest));
  double sum = sums.largest_row;
  for (const double column : sums.columns) sum = std::max(sum, column);
  return scaled(std::move(matrix), type, range_exponent(type, largest, sum));
}

RangeFit scaled(Csr<double> matrix, DataType type, int exponent) {
  RangeFit fit;
  fit.exponent = exponent;
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

std::string note_of(const RangeFit& fit) {
  std::vector<std::string> notes;
  if (fit.exponent != 0)
    notes.push_back(fmt::format("values times 2^{} to stay in range", fit.exponent));
  if (fit.lost != 0)
    notes.push_back(fmt::format("{} of {} values round to zero", fit.lost, fit.nonzeros));
  return notes.empty() ? std::string() : fmt::format(" ({})", fmt::join(notes, "; "));
}

}  // namespace tessera::sparse
