#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::train {

// Returns the k stored blocks whose sum of |values| is smallest, in row-major order. Of equal sums
// the lower place is taken first. Throws Error{InvalidArgument} for k outside [0, stored blocks],
// and Error{BadInput}, which names the matrix by `name` and the place, for a value that is NaN or
// infinite. O(values). Thread-safe.
std::vector<sparse::BlockAt> smallest_blocks(const sparse::Csr<float>& weights, std::int64_t k,
                                             std::string_view name = "weights");

}  // namespace tessera::train
