#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/arrays/tensor/selector.hpp"

namespace tessera::arrays {

// One dimension of a view: the dimension of the underlying tensor, and the part of it that the view
// shows.
struct ViewAxis {
  std::int64_t dim = -1;  // -1: an added dimension of length 1
  std::int64_t offset = 0, length = 1;
};

// The mapping from the dimensions of a view to those of the tensor whose buffers it shares. The
// type is a value; a view of a view has one layout, at any depth. Invariants:
//   1. flags, offsets and lengths have one entry for each underlying dimension
//   2. a fixed dimension (flag 1) has length 1 and does not appear in the view
//   3. the other dimensions appear in their order, with added dimensions of length 1 at the
//      positions in `hidden`
// Example: [:, new axis, 1] of a 4 x 2 x 3 tensor has flags 0 1 0, offsets 0 1 0, lengths 4 1 3 and
// hidden 1; its index (1, 0, 1) is (1, 1, 1) of the tensor.
struct TensorLayout {
  std::vector<std::uint8_t> flags;    // [underlying rank] 1: fixed at its offset
  std::vector<std::int64_t> offsets;  // [underlying rank] first index in the view
  std::vector<std::int64_t> lengths;  // [underlying rank] number of indices in the view
  std::vector<std::int64_t> hidden;   // positions of added dimensions in the view, ascending

  // Returns the layout of a tensor of which every element is in the view.
  static TensorLayout whole(const std::vector<std::int64_t>& shape);
  friend bool operator==(const TensorLayout&, const TensorLayout&) = default;

  std::int64_t underlying_rank() const { return static_cast<std::int64_t>(flags.size()); }
  std::int64_t rank() const;
  std::vector<std::int64_t> shape() const;  // [rank]
  std::vector<ViewAxis> axes() const;       // [rank]

  // Converts an index in the view to the index in the underlying tensor. Negative numbers count
  // from the end. Throws Error{InvalidArgument} if there are not rank() numbers or one is outside
  // its dimension.
  std::vector<std::int64_t> to_physical(std::span<const std::int64_t> index) const;

  // Writes the same to physical[underlying rank] and allocates nothing.
  void to_physical(std::span<const std::int64_t> index, std::int32_t* physical) const;

  // Converts an index in the underlying tensor to the index in the view, or returns nothing if the
  // place is not in the view. Throws Error{InvalidArgument} if there are not underlying_rank()
  // numbers.
  std::optional<std::vector<std::int64_t>> to_view(std::span<const std::int64_t> physical) const;
};

// A layout with the dimension that each selector produced.
struct SelectedLayout {
  TensorLayout layout;
  std::vector<std::int64_t> axis_of;  // [selectors] dimension of the result, -1: removed
};

// Returns the layout of a part of `from`, by the rules of CooTensor::select. Specified with more
// than one index is treated as All here. O(rank).
SelectedLayout select_layout(const TensorLayout& from, const std::vector<Selector>& selectors);

}  // namespace tessera::arrays
