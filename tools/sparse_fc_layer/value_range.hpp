#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/data_type.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::tools {

// What fit_range did to the values of a file.
struct RangeFit {
  int exponent = 0;            // values were multiplied by 2^exponent
  std::int64_t nonzeros = 0;   // of the file
  std::int64_t lost = 0;       // of those, how many are zero in the layer's type
  sparse::Csr<float> weights;  // scaled and rounded to the layer's type
};

// Brings finite values into the range of `type` by one power of two and rounds them.
//   down  when a row or column sum of magnitudes is above 2^14 (half) or 2^100 (float): to or below
//         that, so that no result for operands in [-1, 1] leaves the range
//   up    when the largest magnitude is below 2^-10 (half) or 2^-100 (float): into [1, 2), or as
//   far
//         as the sums allow
// Error{BadInput} that names `where` for a value that is not finite. Takes the pattern over as it
// is. O(values).
RangeFit fit_range(sparse::Csr<double> matrix, DataType type, const std::string& where);

}  // namespace tessera::tools
