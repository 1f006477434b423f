#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::arrays::internal {

// Returns the positions 0 .. count - 1 of the coordinates indices[count][rank], sorted
// lexicographically by the dimensions in `order`; equal coordinates keep their order. The caller
// guarantees 0 <= index < shape <= 2^31 and count <= 2^33. O(count * bits / 8), where bits is the
// sum over all dimensions, with 16 bytes of scratch per coordinate. The key of several dimensions
// and the position share one 64-bit word; if the dimensions do not all fit, they are sorted in
// groups, the last group first.
std::vector<std::uint64_t> sort_positions(std::span<const std::int32_t> indices, std::size_t count,
                                          std::span<const std::int64_t> shape,
                                          std::span<const std::int64_t> order);

}  // namespace tessera::arrays::internal
