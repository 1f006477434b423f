#include "tessera/arrays/mapped/mapping.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tessera/arrays/internal/shape.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::arrays {
namespace {

// Sums of terms, of which each fits 64 bits.
__extension__ using Wide = __int128;

// A term index * stride with 0 <= index < count.
struct Bounded {
  std::int64_t stride, count;
  std::size_t at;            // position of the index in the result
  Wide least = 0, most = 0;  // bounds of the sum of all terms after this one
  Wide divisor = 1;          // divides every sum of this term and all terms after it
};

Wide floor_div(Wide n, Wide d) { return n / d - (n % d != 0 && (n < 0) != (d < 0)); }

// The choice of indices is a knapsack problem: the search of hostile strides is exponential.
constexpr std::int64_t kMostSteps = 1 << 20;

// Searches indices for which the terms sum up to `target`. Returns false if there are none. Each
// index that is tried takes one of the steps left.
bool solve_from(std::span<const Bounded> terms, Wide target, std::span<std::int64_t> index,
                std::int64_t& steps_left) {
  if (terms.empty()) return target == 0;
  const Bounded& t = terms.front();
  if (target % t.divisor != 0) return false;
  // stride * i must be in [target - most, target - least].
  const Wide a = target - t.most, b = target - t.least;
  const Wide from = t.stride > 0 ? -floor_div(-a, t.stride) : -floor_div(-b, t.stride);
  const Wide to = t.stride > 0 ? floor_div(b, t.stride) : floor_div(a, t.stride);
  for (Wide i = std::max<Wide>(from, 0); i <= std::min<Wide>(to, t.count - 1); ++i) {
    if (steps_left-- == 0)
      throw Error(ErrorCode::LimitExceeded,
                  fmt::format("no index was found in {} steps; use strides of which each is larger "
                              "than all terms of smaller strides together",
                              kMostSteps));
    index[t.at] = static_cast<std::int64_t>(i);
    if (solve_from(terms.subspan(1), target - t.stride * i, index, steps_left)) return true;
  }
  return false;
}

// The size of INT64_MIN fits, because the result has no sign.
std::uint64_t size_of(std::int64_t stride) {
  return stride < 0 ? -static_cast<std::uint64_t>(stride) : static_cast<std::uint64_t>(stride);
}

bool solve(std::vector<Bounded>& terms, Wide target, std::span<std::int64_t> index) {
  std::ranges::stable_sort(terms, [](const Bounded& a, const Bounded& b) {
    return size_of(a.stride) > size_of(b.stride);
  });
  std::uint64_t divisor = 0;
  for (std::size_t i = terms.size(); i-- > 0;) {
    terms[i].divisor = divisor = std::gcd(divisor, size_of(terms[i].stride));
    if (i == 0) break;
    const Wide reach = Wide{terms[i].stride} * std::max<std::int64_t>(terms[i].count - 1, 0);
    terms[i - 1].least = terms[i].least + std::min<Wide>(reach, 0);
    terms[i - 1].most = terms[i].most + std::max<Wide>(reach, 0);
  }
  std::int64_t steps_left = kMostSteps;
  return solve_from(terms, target, index, steps_left);
}

std::vector<std::int64_t> identity(std::size_t rank) {
  std::vector<std::int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<std::int64_t> default_cut(std::size_t rank) {
  if (rank < 2) return {};
  return {static_cast<std::int64_t>(rank) - 1};
}

void check_order(const std::vector<std::int64_t>& dimensions, std::size_t rank) {
  std::vector<std::int64_t> sorted = dimensions;
  std::ranges::sort(sorted);
  if (sorted == identity(rank)) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("dimensions [{}] of a mapping must name each of 0..{} once",
                          fmt::join(dimensions, ", "), std::int64_t(rank) - 1));
}

void check_cuts(const std::vector<std::int64_t>& cuts, std::int64_t rank) {
  for (std::size_t i = 0; i < cuts.size(); ++i)
    if (cuts[i] < 1 || cuts[i] >= rank || (i > 0 && cuts[i] <= cuts[i - 1]))
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("partitioning [{}] of a mapping must ascend strictly in 1..{}",
                              fmt::join(cuts, ", "), rank - 1));
}

// Returns the storage axis that flattens some axes row-major.
MapAxis flattened(std::span<const std::int64_t> dimensions,
                  const std::vector<std::int64_t>& shape) {
  MapAxis axis;
  std::int64_t stride = 1;  // stays positive if a length is 0
  for (std::size_t i = dimensions.size(); i-- > 0;) {
    const std::int64_t length = shape[std::size_t(dimensions[i])];
    axis.terms.insert(axis.terms.begin(), MapTerm{dimensions[i], stride});
    stride = checked_mul(stride, std::max<std::int64_t>(length, 1), "places of a storage axis");
    axis.length *= length;
  }
  return axis;
}

Progression taken(const AxisSelector& selector, std::int64_t length, std::int64_t axis) {
  if (const auto* slice = std::get_if<Slice>(&selector)) return slice->reduced(length);
  if (const auto* point = std::get_if<Point>(&selector))
    return {resolve_index(point->at, length, axis), 1, 1};
  return {0, 1, length};
}

}  // namespace

Mapping::Mapping(std::vector<std::int64_t> shape)
    : Mapping(shape, identity(shape.size()), default_cut(shape.size())) {}

Mapping::Mapping(std::vector<std::int64_t> shape, std::vector<std::int64_t> dimensions,
                 std::vector<std::int64_t> partitioning)
    : shape_(std::move(shape)) {
  internal::checked_elements(shape_);
  check_order(dimensions, shape_.size());
  check_cuts(partitioning, rank());
  std::int64_t begin = 0;
  partitioning.push_back(rank());
  for (const std::int64_t end : partitioning) {
    axes_.push_back(flattened(
        std::span(dimensions).subspan(std::size_t(begin), std::size_t(end - begin)), shape_));
    begin = end;
  }
}

std::vector<std::int64_t> Mapping::storage_shape() const {
  std::vector<std::int64_t> result;
  for (const MapAxis& axis : axes_) result.push_back(axis.length);
  return result;
}

std::vector<std::int64_t> Mapping::reduce(std::span<const std::int64_t> index) const {
  if (std::ssize(index) != rank())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("an index of {} numbers was given for a mapped array of rank {}",
                            index.size(), rank()));
  std::vector<std::int64_t> place;
  for (const MapAxis& axis : axes_) {
    std::int64_t sum = axis.offset;
    for (const MapTerm& term : axis.terms)
      sum += term.stride * resolve_index(index[std::size_t(term.axis)],
                                         shape_[std::size_t(term.axis)], term.axis);
    place.push_back(sum);
  }
  return place;
}

bool Mapping::promote_axis(std::int64_t storage_axis, std::int64_t place,
                           std::span<std::int64_t> index) const {
  const MapAxis& axis = axes_[std::size_t(storage_axis)];
  std::vector<Bounded> terms;
  for (const MapTerm& term : axis.terms)
    terms.push_back({term.stride, shape_[std::size_t(term.axis)], std::size_t(term.axis)});
  return solve(terms, Wide{place} - axis.offset, index);
}

std::optional<std::vector<std::int64_t>> Mapping::promote(
    std::span<const std::int64_t> place) const {
  if (place.size() != axes_.size())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("a place of {} numbers was given for a storage of rank {}",
                            place.size(), axes_.size()));
  std::vector<std::int64_t> index(shape_.size());
  for (std::size_t k = 0; k < axes_.size(); ++k)
    if (!promote_axis(std::int64_t(k), place[k], index)) return std::nullopt;
  return index;
}

Mapping Mapping::select(const std::vector<AxisSelector>& selectors) const {
  if (std::ssize(selectors) > rank())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} selectors were given for a mapped array of rank {}",
                            selectors.size(), rank()));
  Mapping result = *this;
  result.shape_.clear();
  std::vector<Progression> part;
  std::vector<std::int64_t> new_axis;  // [old axes] number of the new axis, -1: removed
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    const AxisSelector selector = d < selectors.size() ? selectors[d] : AxisSelector(All{});
    const bool stays = !std::holds_alternative<Point>(selector);
    part.push_back(taken(selector, shape_[d], std::int64_t(d)));
    new_axis.push_back(stays ? std::ssize(result.shape_) : -1);
    if (stays) result.shape_.push_back(part.back().count);
  }
  for (MapAxis& axis : result.axes_) {
    std::vector<MapTerm> kept;
    for (const MapTerm& term : std::exchange(axis.terms, {})) {
      const Progression& p = part[std::size_t(term.axis)];
      const std::int64_t axis_now = new_axis[std::size_t(term.axis)];
      axis.offset += p.count == 0 ? 0 : term.stride * p.start;
      // If the step takes one index at most, stride * step might overflow and is not needed.
      if (axis_now >= 0) kept.push_back({axis_now, p.count <= 1 ? 1 : term.stride * p.step});
    }
    axis.terms = std::move(kept);
  }
  return result;
}

Mapping Mapping::swapped(std::int64_t a, std::int64_t b) const {
  a = resolve_index(a, rank(), 0), b = resolve_index(b, rank(), 0);
  Mapping result = *this;
  std::swap(result.shape_[std::size_t(a)], result.shape_[std::size_t(b)]);
  for (MapAxis& axis : result.axes_)
    for (MapTerm& term : axis.terms)
      term.axis = term.axis == a ? b : term.axis == b ? a : term.axis;
  return result;
}

std::optional<std::vector<std::int64_t>> solve_index(std::span<const std::int64_t> strides,
                                                     std::span<const std::int64_t> shape,
                                                     std::int64_t target) {
  if (strides.size() != shape.size())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} strides and {} lengths were given; each stride needs one",
                            strides.size(), shape.size()));
  std::vector<Bounded> terms;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    if (strides[i] == 0) throw Error(ErrorCode::InvalidArgument, fmt::format("stride {} is 0", i));
    if (shape[i] < 0)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("length {} is {}; the least is 0", i, shape[i]));
    checked_mul(strides[i], std::max<std::int64_t>(shape[i] - 1, 0), "the reach of a stride");
    terms.push_back({strides[i], shape[i], i});
  }
  std::vector<std::int64_t> index(shape.size());
  if (!solve(terms, target, index)) return std::nullopt;
  return index;
}

}  // namespace tessera::arrays
