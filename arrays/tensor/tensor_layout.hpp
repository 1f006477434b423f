#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/arrays/tensor/selector.hpp"

namespace tessera::arrays {

// One dimension of a view: which dimension of the underlying tensor it runs along and from where.
struct ViewAxis {
  std::int64_t dim = -1;  // -1: an added axis, of length 1
  std::int64_t offset = 0, length = 1;
};

// How the dimensions of a view lie in the tensor whose buffers it shares. A value; views of views
// are again one layout, however deep.
//   1. flags, offsets and lengths have one entry for each underlying dimension
//   2. a fixed dimension (flag 1) has length 1 and does not appear in the view
//   3. the others appear in their order, with added axes of length 1 at the positions in `hidden`
// Example: [:, new axis, 1] of a 4 x 2 x 3 tensor has flags 0 1 0, offsets 0 1 0, lengths 4 1 3 and
// hidden 1; its index (1, 0, 1) is (1, 1, 1) of the tensor.
struct TensorLayout {
  std::vector<std::uint8_t> flags;    // [underlying rank] 1: fixed at its offset
  std::vector<std::int64_t> offsets;  // [underlying rank] first index that is seen
  std::vector<std::int64_t> lengths;  // [underlying rank] indices that are seen
  std::vector<std::int64_t> hidden;   // ascending positions in the view of added axes

  // The layout of a tensor that is seen whole.
  static TensorLayout whole(const std::vector<std::int64_t>& shape);
  friend bool operator==(const TensorLayout&, const TensorLayout&) = default;

  std::int64_t underlying_rank() const { return static_cast<std::int64_t>(flags.size()); }
  std::int64_t rank() const;
  std::vector<std::int64_t> shape() const;  // [rank]
  std::vector<ViewAxis> axes() const;       // [rank]

  // Index in the view -> index in the underlying tensor. Error{InvalidArgument} when there are not
  // rank() numbers or one lies outside; negative ones count from the end.
  std::vector<std::int64_t> to_physical(std::span<const std::int64_t> index) const;
  // The same into physical[underlying rank], without allocating.
  void to_physical(std::span<const std::int64_t> index, std::int32_t* physical) const;
  // The inverse; nothing when the view does not show that place. Error{InvalidArgument} when there
  // are not underlying_rank() numbers.
  std::optional<std::vector<std::int64_t>> to_view(std::span<const std::int64_t> physical) const;
};

// A layout and where each selector went.
struct SelectedLayout {
  TensorLayout layout;
  std::vector<std::int64_t> axis_of;  // [selectors] dimension of the result, -1: gone
};

// The layout of a part of `from`, by the rules of CooTensor::select; Specified with more than one
// index counts as All here. O(rank).
SelectedLayout select_layout(const TensorLayout& from, const std::vector<Selector>& selectors);

}  // namespace tessera::arrays
