#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "tessera/arrays/mapped/slice.hpp"
#include "tessera/arrays/tensor/selector.hpp"

namespace tessera::arrays {

// One axis of an array as a term of a storage index: index[axis] * stride.
struct MapTerm {
  std::int64_t axis = 0, stride = 1;
  friend bool operator==(const MapTerm&, const MapTerm&) = default;
};

// A storage index is offset + the sum of its terms.
struct MapAxis {
  std::vector<MapTerm> terms;
  std::int64_t offset = 0;
  std::int64_t length = 1;  // of the storage axis
  friend bool operator==(const MapAxis&, const MapAxis&) = default;
};

// What is taken of one axis: a point takes the axis away.
using AxisSelector = std::variant<All, Point, Slice>;

// How the axes of an array of any rank lie in a storage of fewer axes: the axes are put into an
// order (`dimensions`), that is cut at `partitioning`, and each part is flattened row-major into
// one storage axis. Slicing changes offsets and strides, never the storage. A value. Example: shape
// 3 x 4 x 5, dimensions 2 1 0, cut at 1: storage 5 x 12, index (i, j, k) lies at (k, 3 * j + i).
class Mapping {
 public:
  // Defaults: axes in their order; cut before the last one, nowhere for rank 1 and 0.
  // Error{InvalidArgument} unless dimensions name each axis once and cuts ascend strictly in
  // 1..rank - 1; Error{LimitExceeded} when a storage axis has more than 2^63 - 1 places.
  explicit Mapping(std::vector<std::int64_t> shape);
  Mapping(std::vector<std::int64_t> shape, std::vector<std::int64_t> dimensions,
          std::vector<std::int64_t> partitioning);

  std::int64_t rank() const { return static_cast<std::int64_t>(shape_.size()); }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  const std::vector<MapAxis>& axes() const { return axes_; }  // of the storage
  std::vector<std::int64_t> storage_shape() const;

  // Index of the array -> of the storage; negative numbers count from the end.
  // Error{InvalidArgument} when there are not rank() numbers or one lies outside. O(rank).
  std::vector<std::int64_t> reduce(std::span<const std::int64_t> index) const;
  // The inverse; nothing when the array does not show that place. Usually O(rank^2).
  std::optional<std::vector<std::int64_t>> promote(std::span<const std::int64_t> place) const;
  // The same for one storage axis: fills in the indices of its own array axes.
  bool promote_axis(std::int64_t storage_axis, std::int64_t place,
                    std::span<std::int64_t> index) const;

  // One selector for each axis, All for those that are not reached. O(rank).
  Mapping select(const std::vector<AxisSelector>& selectors) const;
  // Two axes change places. O(rank).
  Mapping swapped(std::int64_t a, std::int64_t b) const;

  friend bool operator==(const Mapping&, const Mapping&) = default;

 private:
  std::vector<std::int64_t> shape_;
  std::vector<MapAxis> axes_;
};

// Finds index[i] in 0..shape[i] - 1 with the sum of index[i] * strides[i] == target, the first in
// the order of falling |stride|, small indices first; nothing when there is none. Strides may
// overlap and be negative. Usually O(terms), at worst the number of partial choices that could
// still reach the target. Example: strides 2 1 and shape 12 x 2 reach 7 by (3, 1).
std::optional<std::vector<std::int64_t>> solve_index(std::span<const std::int64_t> strides,
                                                     std::span<const std::int64_t> shape,
                                                     std::int64_t target);

}  // namespace tessera::arrays
