#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tessera/base/data_type.hpp"

namespace tessera::runtime::internal {

// Writes result[i] = the sum of source[i] over the sources, in order, for i in [0, n). Partial sums
// are rounded to their type at each addition.
using AddUp = void (*)(std::span<const std::byte* const> sources, std::int64_t n,
                       std::byte* result);

// Returns the function for these types. Sums of 16 bits have the type of the result.
AddUp add_up_for(DataType partials, DataType result);

// Adds n partial sums to as many others, as AddUp does with both as sources, and clears them.
using MoveUp = void (*)(std::byte* from, std::int64_t n, std::byte* to);

// Returns the function for partial sums of this type.
MoveUp move_up_for(DataType partials);

}  // namespace tessera::runtime::internal
