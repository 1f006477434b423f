#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/data_type.hpp"

namespace tessera::sparse {

// Throws Error{BadInput}, which names the value and its position, for a finite value that would
// become infinite in `type`: every result that it has a part in would then be infinite or not a
// number, and no check could tell whether it is right. Infinite values and NaN are let through,
// because they stay what they are. `first` is the position of the first value. O(values).
void check_range(std::span<const float> values, DataType type, std::int64_t first = 0);

}  // namespace tessera::sparse
