#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/base/int_math.hpp"

namespace tessera {

// The four sizes of a layer, which always travel together: Q[g][x][z] = R[g][x][y] * S[g][y][z].
//   g groups, x output features, y input features, z batch.
// The type is also used for partition counts, grains and positions. Operations are element by
// element; overflow is not checked.
struct Dims {
  std::int64_t g = 1, x = 1, y = 1, z = 1;

  friend bool operator==(const Dims&, const Dims&) = default;
  friend constexpr Dims operator*(Dims a, Dims b) {
    return {a.g * b.g, a.x * b.x, a.y * b.y, a.z * b.z};
  }
  constexpr std::int64_t product() const { return g * x * y * z; }
};

// Returns ceil(n / d), element by element.
// Example: ceil_div({1, 10, 7, 4}, {1, 3, 7, 8}) == {1, 4, 1, 1}.
constexpr Dims ceil_div(Dims n, Dims d) {
  return {ceil_div(n.g, d.g), ceil_div(n.x, d.x), ceil_div(n.y, d.y), ceil_div(n.z, d.z)};
}

// Returns the four sizes as text, for example "g1 x86 y8 z2".
std::string to_string(const Dims& dims);

// The axes along which a partition index can move.
enum class Axis { X, Y, Z };

// Returns "x", "y" or "z"; the text is valid as long as the program.
std::string_view to_string(Axis axis);

// Returns the member of one axis, to read or to write.
template <class AnyDims>
constexpr auto& along(AnyDims& dims, Axis axis) {
  return axis == Axis::X ? dims.x : axis == Axis::Y ? dims.y : dims.z;
}

// A half-open range of indices along one axis, for example one share of a partition.
struct Range {
  std::int64_t begin = 0, end = 0;
  friend bool operator==(const Range&, const Range&) = default;
  constexpr std::int64_t size() const { return end - begin; }
};

// Returns the indices that both ranges have; an empty range if there are none.
constexpr Range common(Range a, Range b) {
  const std::int64_t begin = a.begin > b.begin ? a.begin : b.begin;
  const std::int64_t end = a.end < b.end ? a.end : b.end;
  return {begin, end > begin ? end : begin};
}

// Returns share i of `size` elements that are cut into `parts` shares of whole grains. All shares
// are equal except the last: share i begins at i * ceil(ceil(size / grain) / parts) * grain and
// ends at `size` at the latest. A share past the end is empty.
// Example: share_of(10, 1, 4, 3) == {9, 10}.
constexpr Range share_of(std::int64_t size, std::int64_t grain, std::int64_t parts,
                         std::int64_t i) {
  const std::int64_t step = ceil_div(ceil_div(size, grain), parts) * grain;
  const auto clamp = [size](std::int64_t v) { return v < size ? v : size; };
  return {clamp(i * step), clamp((i + 1) * step)};
}

// Returns true if so many parts (1 or more) of whole grains leave no share empty: a count is then
// the smallest for its share size.
constexpr bool is_share_count(std::int64_t grains, std::int64_t parts) {
  return parts <= grains && ceil_div(grains, ceil_div(grains, parts)) == parts;
}

}  // namespace tessera
