#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::arrays::internal {

// Positions 0 .. count - 1 of the coordinates indices[count][rank], sorted lexicographically by the
// dimensions in `order`; equal coordinates keep their order. Needs 0 <= index < shape <= 2^31 and
// count <= 2^33. O(count * bits / 8), bits being those of all dimensions together; 16 bytes a
// coordinate while it runs. A key of several dimensions and the position share one 64-bit word;
// where all dimensions do not fit, they are sorted in groups, the last group first.
std::vector<std::uint64_t> sort_positions(std::span<const std::int32_t> indices, std::size_t count,
                                          std::span<const std::int64_t> shape,
                                          std::span<const std::int64_t> order);

}  // namespace tessera::arrays::internal
