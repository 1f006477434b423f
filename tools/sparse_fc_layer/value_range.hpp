#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/data_type.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::tools {

// The values of a file after fit_range, and the changes it made.
struct RangeFit {
  int exponent = 0;            // values were multiplied by 2^exponent
  std::int64_t nonzeros = 0;   // non-zero values of the file
  std::int64_t lost = 0;       // those of them that round to zero in the layer's type
  sparse::Csr<float> weights;  // scaled and rounded to the layer's type
};

// Scales finite values into the range of `type` by one power of two and rounds them. The pattern is
// not changed.
//   * Values are scaled down if a row or column sum of magnitudes is above 2^14 (half) or 2^100
//     (float): to that limit or below, so that no result for operands in [-1, 1] leaves the range.
//   * Values are scaled up if the largest magnitude is below 2^-10 (half) or 2^-100 (float): into
//     [1, 2), or as far as the sums and an exponent of 1023 allow.
// Throws Error{BadInput}, which names `where`, for a value that is not finite. O(values).
RangeFit fit_range(sparse::Csr<double> matrix, DataType type, const std::string& where);

}  // namespace tessera::tools
