#include "tessera/arrays/internal/flat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "tessera/arrays/internal/shape.hpp"
#include "tessera/base/error.hpp"

namespace tessera::arrays::internal {

Fields::Fields(std::vector<std::int64_t> shape)
    : shape_(std::move(shape)), shifts_(shape_.size()), masks_(shape_.size()) {
  for (const std::int64_t length : shape_)
    field_bits_.push_back(length <= 1 ? 0 : int(std::bit_width(std::uint64_t(length - 1))));
  for (std::size_t d = shape_.size(); d-- > 0;) {
    // A field without bits stays at shift 0, because a shift by 64 is undefined.
    shifts_[d] = field_bits_[d] == 0 ? 0 : bits_;
    masks_[d] = (std::uint64_t{1} << field_bits_[d]) - 1;
    bits_ += field_bits_[d];
    if (bits_ > 64)
      throw Error(ErrorCode::LimitExceeded,
                  fmt::format("an array of {} needs more than 64 bits for the indices of a place; "
                              "select a part of it",
                              shape_text(shape_)));
  }
}

Repack::Repack(const Fields& from, std::span<const std::int64_t> dims, const Fields& to) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto d = static_cast<std::size_t>(dims[i]);
    if (from.bits(d) == 0) continue;
    const std::uint64_t mask = (std::uint64_t{1} << from.bits(d)) - 1;
    Move* last = moves_.empty() ? nullptr : &moves_.back();
    // Neighbours that stay neighbours move as one field.
    if (last != nullptr && from.shift(d) + from.bits(d) == last->from &&
        to.shift(i) + from.bits(d) == last->to)
      *last = {from.shift(d), to.shift(i), last->mask << from.bits(d) | mask};
    else
      moves_.push_back({from.shift(d), to.shift(i), mask});
  }
}

std::vector<std::int64_t> chosen(std::span<const std::int64_t> shape,
                                 std::span<const std::int64_t> dims) {
  std::vector<std::int64_t> result;
  for (const std::int64_t d : dims) result.push_back(shape[std::size_t(d)]);
  return result;
}

std::size_t dims_to_sort(std::span<const std::int64_t> order) {
  std::size_t sorted = order.size();
  while (sorted > 0 && (sorted == order.size() || order[sorted - 1] < order[sorted])) --sorted;
  return sorted;
}

}  // namespace tessera::arrays::internal
