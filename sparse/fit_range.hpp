#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// Returns the largest finite value of a type.
double largest_of(DataType type);

// Throws Error{BadInput}, which names `where`, for a value that is not finite, or not after
// rounding to the type.
void require_in_range(const Csr<double>& matrix, DataType type, const std::string& where);

// The values of a file after fit_range, and the changes it made.
struct RangeFit {
  int exponent = 0;           // values were multiplied by 2^exponent
  std::int64_t nonzeros = 0;  // non-zero values of the file
  std::int64_t lost = 0;      // those of them that round to zero in the layer's type
  Csr<float> weights;         // scaled and rounded to the layer's type
};

// Scales finite values into the range of `type` by one power of two and rounds them. The pattern is
// not changed.
//   * Values are scaled down if a row or column sum of magnitudes is above 2^14 (half) or 2^100
//     (float): to that limit or below, so that no result for operands in [-1, 1] leaves the range.
//   * Values are scaled up if the largest magnitude is below 2^-10 (half) or 2^-100 (float): into
//     [1, 2), or as far as the sums and an exponent of 1023 allow.
// Throws Error{BadInput}, which names `where`, for a value that is not finite. O(values).
RangeFit fit_range(Csr<double> matrix, DataType type, const std::string& where);

// The steps of fit_range, for a matrix of which each of several ranks has some rows.

// Returns the largest magnitude. Throws as fit_range.
double largest_magnitude(const Csr<double>& matrix, const std::string& where);

// Sums of |value| * 2^shift: the largest one of a row, and that of every column.
struct MagnitudeSums {
  double largest_row = 0;
  std::vector<double> columns;
};
MagnitudeSums magnitude_sums(const Csr<double>& matrix, int shift);

// Returns the shift that keeps such sums finite.
int shift_of(double largest);

// Returns the exponent of the scale, for the largest magnitude and the largest sum of a row or
// column, taken with the shift.
int range_exponent(DataType type, double largest, double largest_sum);

// Scales and rounds the values.
RangeFit scaled(Csr<double> matrix, DataType type, int exponent);

// Returns a note about the changes to the values of a file; empty if there were none.
std::string note_of(const RangeFit& fit);

}  // namespace tessera::sparse
