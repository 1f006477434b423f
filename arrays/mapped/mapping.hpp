#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "tessera/arrays/mapped/slice.hpp"
#include "tessera/arrays/tensor/selector.hpp"

namespace tessera::arrays {

// The contribution of one axis of an array to a storage index: index[axis] * stride.
struct MapTerm {
  std::int64_t axis = 0, stride = 1;
  friend bool operator==(const MapTerm&, const MapTerm&) = default;
};

// One axis of a storage. The index along it is offset + the sum of the terms.
struct MapAxis {
  std::vector<MapTerm> terms;
  std::int64_t offset = 0;
  std::int64_t length = 1;  // number of indices along the storage axis
  friend bool operator==(const MapAxis&, const MapAxis&) = default;
};

// The selection of indices along one axis. A point removes the axis.
using AxisSelector = std::variant<All, Point, Slice>;

// The mapping from the axes of an array of any rank to a storage of fewer axes: the axes are put
// into an order (`dimensions`), the order is cut at `partitioning`, and each part is flattened
// row-major into one storage axis. Slicing changes offsets and strides, never the storage. The type
// is a value. Example: shape 3 x 4 x 5 with dimensions 2 1 0, cut at 1, has storage 5 x 12, and
// index (i, j, k) is stored at (k, 3 * j + i).
class Mapping {
 public:
  // Makes a mapping. By default the axes are in their order and cut before the last one, without a
  // cut for rank 1 and 0. Throws Error{InvalidArgument} unless dimensions name each axis once and
  // cuts ascend strictly in 1..rank - 1, and Error{LimitExceeded} if a storage axis has more than
  // 2^63 - 1 places.
  explicit Mapping(std::vector<std::int64_t> shape);
  Mapping(std::vector<std::int64_t> shape, std::vector<std::int64_t> dimensions,
          std::vector<std::int64_t> partitioning);

  std::int64_t rank() const { return static_cast<std::int64_t>(shape_.size()); }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  const std::vector<MapAxis>& axes() const { return axes_; }  // of the storage
  std::vector<std::int64_t> storage_shape() const;

  // Converts an index of the array to an index of the storage. Negative numbers count from the end.
  // Throws Error{InvalidArgument} if there are not rank() numbers or one is outside its axis.
  // O(rank).
  std::vector<std::int64_t> reduce(std::span<const std::int64_t> index) const;

  // Converts an index of the storage to an index of the array, or returns nothing if the array does
  // not contain that place. Usually O(rank^2).
  std::optional<std::vector<std::int64_t>> promote(std::span<const std::int64_t> place) const;

  // Does the same for one storage axis: sets the indices of the array axes that it consists of, and
  // returns false if the array does not contain that place.
  bool promote_axis(std::int64_t storage_axis, std::int64_t place,
                    std::span<std::int64_t> index) const;

  // Returns the mapping of a part of the array. There is one selector for each axis; axes beyond
  // the list are selected by All. O(rank).
  Mapping select(const std::vector<AxisSelector>& selectors) const;

  // Returns the mapping with two axes of the array exchanged. O(rank).
  Mapping swapped(std::int64_t a, std::int64_t b) const;

  friend bool operator==(const Mapping&, const Mapping&) = default;

 private:
  std::vector<std::int64_t> shape_;
  std::vector<MapAxis> axes_;
};

// Returns the indices index[i] in 0..shape[i] - 1 for which the sum of index[i] * strides[i] is
// `target`, or nothing if there are none. Of several solutions it returns the first when terms are
// tried in the order of falling |stride|, small indices first. Strides may overlap and be negative.
// Throws Error{InvalidArgument} for a stride of 0, a length below 0 and lists of different lengths,
// and Error{LimitExceeded} if stride * (length - 1) does not fit in 64 bits or the search takes
// more than 2^20 steps, which strides of a row-major order never need: for them it takes O(terms)
// steps. Example: strides 2 1 and shape 12 x 2 reach 7 by (3, 1).
std::optional<std::vector<std::int64_t>> solve_index(std::span<const std::int64_t> strides,
                                                     std::span<const std::int64_t> shape,
                                                     std::int64_t target);

}  // namespace tessera::arrays
