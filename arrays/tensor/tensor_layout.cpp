#include "tessera/arrays/tensor/tensor_layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"

namespace tessera::arrays {
namespace {

[[noreturn]] void throw_rank(std::size_t given, std::int64_t rank) {
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("an index of {} numbers was given for a tensor of rank {}; give one "
                          "number for each dimension",
                          given, rank));
}

// A dimension of the result, or one that a point may remove.
struct PickedAxis {
  ViewAxis axis;
  std::size_t selector = 0;
  bool dropped = false;
};

// Returns the consecutive indices that a selector takes, and checks those that are listed.
Range resolve_selector(const Selector& selector, std::int64_t length, std::int64_t dimension) {
  if (const auto* list = std::get_if<Specified>(&selector)) resolve(*list, length, dimension);
  return resolve(contiguous(selector), length, dimension);
}

std::vector<PickedAxis> picks_of(const std::vector<ViewAxis>& axes,
                                 const std::vector<Selector>& selectors) {
  std::vector<PickedAxis> picks;
  std::size_t next = 0;
  for (std::size_t s = 0; s < selectors.size(); ++s) {
    if (std::holds_alternative<NewAxis>(selectors[s])) {
      picks.push_back({ViewAxis{}, s, false});
      continue;
    }
    if (next == axes.size())
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("there are more selectors than the {} dimensions of the tensor; only "
                              "new axes may be added",
                              axes.size()));
    ViewAxis axis = axes[next];
    const Range seen = resolve_selector(selectors[s], axis.length, static_cast<std::int64_t>(next));
    axis.offset += seen.begin;
    axis.length = seen.size();
    picks.push_back({axis, s, std::holds_alternative<Point>(contiguous(selectors[s]))});
    ++next;
  }
  for (; next < axes.size(); ++next) picks.push_back({axes[next], selectors.size(), false});
  return picks;
}

// Keeps the first points as dimensions of length 1 as long as there are fewer than two dimensions
// (or fewer than before).
void keep_two_dimensions(std::int64_t rank_before, std::vector<PickedAxis>& picks) {
  std::int64_t kept =
      std::count_if(picks.begin(), picks.end(), [](const PickedAxis& p) { return !p.dropped; });
  for (PickedAxis& pick : picks) {
    if (kept >= std::min<std::int64_t>(2, rank_before)) return;
    if (pick.dropped) pick.dropped = false, ++kept;
  }
}

}  // namespace

TensorLayout TensorLayout::whole(const std::vector<std::int64_t>& shape) {
  return {std::vector<std::uint8_t>(shape.size(), 0),
          std::vector<std::int64_t>(shape.size(), 0),
          shape,
          {}};
}

std::int64_t TensorLayout::rank() const {
  return std::count(flags.begin(), flags.end(), 0) + static_cast<std::int64_t>(hidden.size());
}

std::vector<ViewAxis> TensorLayout::axes() const {
  std::vector<ViewAxis> result;
  std::size_t next_hidden = 0;
  const auto add_hidden = [&] {
    for (; next_hidden < hidden.size() &&
           hidden[next_hidden] == static_cast<std::int64_t>(result.size());
         ++next_hidden)
      result.push_back({});
  };
  add_hidden();
  for (std::size_t d = 0; d < flags.size(); ++d) {
    if (flags[d] != 0) continue;
    result.push_back({static_cast<std::int64_t>(d), offsets[d], lengths[d]});
    add_hidden();
  }
  return result;
}

std::vector<std::int64_t> TensorLayout::shape() const {
  std::vector<std::int64_t> result;
  for (const ViewAxis& axis : axes()) result.push_back(axis.length);
  return result;
}

void TensorLayout::to_physical(std::span<const std::int64_t> index, std::int32_t* physical) const {
  std::size_t dim = 0, next_hidden = 0;
  const auto pass_fixed = [&] {
    for (; dim < flags.size() && flags[dim] != 0; ++dim)
      physical[dim] = static_cast<std::int32_t>(offsets[dim]);
  };
  pass_fixed();
  for (std::size_t k = 0; k < index.size(); ++k) {
    const auto position = static_cast<std::int64_t>(k);
    if (next_hidden < hidden.size() && hidden[next_hidden] == position) {
      resolve_index(index[k], 1, position);
      ++next_hidden;
      continue;
    }
    if (dim == flags.size()) throw_rank(index.size(), rank());
    physical[dim] =
        static_cast<std::int32_t>(offsets[dim] + resolve_index(index[k], lengths[dim], position));
    ++dim;
    pass_fixed();
  }
  if (dim != flags.size() || next_hidden != hidden.size()) throw_rank(index.size(), rank());
}

std::vector<std::int64_t> TensorLayout::to_physical(std::span<const std::int64_t> index) const {
  std::vector<std::int32_t> physical(flags.size());
  to_physical(index, physical.data());
  return {physical.begin(), physical.end()};
}

std::optional<std::vector<std::int64_t>> TensorLayout::to_view(
    std::span<const std::int64_t> physical) const {
  if (physical.size() != flags.size()) throw_rank(physical.size(), underlying_rank());
  for (std::size_t d = 0; d < flags.size(); ++d)
    if (physical[d] < offsets[d] || physical[d] >= offsets[d] + lengths[d]) return std::nullopt;
  std::vector<std::int64_t> index;
  for (const ViewAxis& axis : axes())
    index.push_back(axis.dim < 0 ? 0 : physical[std::size_t(axis.dim)] - axis.offset);
  return index;
}

SelectedLayout select_layout(const TensorLayout& from, const std::vector<Selector>& selectors) {
  std::vector<PickedAxis> picks = picks_of(from.axes(), selectors);
  keep_two_dimensions(from.rank(), picks);
  SelectedLayout result{from, std::vector<std::int64_t>(selectors.size(), -1)};
  result.layout.hidden.clear();
  std::int64_t position = 0;
  for (const PickedAxis& pick : picks) {
    if (pick.axis.dim >= 0) {
      const auto d = static_cast<std::size_t>(pick.axis.dim);
      result.layout.offsets[d] = pick.axis.offset;
      result.layout.lengths[d] = pick.axis.length;
      result.layout.flags[d] = pick.dropped ? 1 : 0;
    }
    if (pick.dropped) continue;
    if (pick.axis.dim < 0) result.layout.hidden.push_back(position);
    if (pick.selector < selectors.size()) result.axis_of[pick.selector] = position;
    ++position;
  }
  return result;
}

}  // namespace tessera::arrays
