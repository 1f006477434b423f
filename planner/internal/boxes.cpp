#include "tessera/planner/internal/boxes.hpp"

#include <algorithm>
#include <cmath>

#include "tessera/base/int_math.hpp"

namespace tessera::planner::internal {
namespace {

constexpr std::array<std::int64_t Dims::*, 3> kSides{&Dims::x, &Dims::y, &Dims::z};

bool must_divide(const Case& c, std::int64_t Dims::* side) {
  return c.parity() && side == &Dims::z;
}

// Returns the greatest count that is at most `from` and may be chosen; 1 always may.
std::int64_t previous_count(const Case& c, std::int64_t Dims::* side, std::int64_t from) {
  const std::int64_t grains = c.grains.*side;
  if (!must_divide(c, side)) return ceil_div(grains, ceil_div(grains, from));
  while (grains % from != 0) from = grains / ceil_div(grains, from);
  return from;
}

// Returns the least count that is at least `from` and may be chosen, or nullopt if there is none.
std::optional<std::int64_t> next_count(const Case& c, std::int64_t Dims::* side,
                                       std::int64_t from) {
  const std::int64_t grains = c.grains.*side;
  if (from > grains) return {};
  if (must_divide(c, side)) {
    // The least count with a smaller quotient skips all counts that have the same one.
    while (grains % from != 0) from = ceil_div(grains, grains / from);
    return from;
  }
  const std::int64_t share = ceil_div(grains, from), least = ceil_div(grains, share);
  if (least == from) return from;
  if (share == 1) return {};
  return ceil_div(grains, share - 1);
}

std::optional<std::int64_t> pin_of(const PlanConstraints& pins, std::int64_t Dims::* side) {
  return side == &Dims::x ? pins.x : side == &Dims::y ? pins.y : pins.z;
}

}  // namespace

std::optional<Box> whole_box(const Case& c) {
  Box box{c.grains, c.grains};
  for (std::int64_t Dims::* side : kSides) {
    const auto pin = pin_of(c.options.constraints, side);
    box.lo.*side = pin.value_or(1);
    box.hi.*side = pin.value_or(std::min(c.grains.*side, c.machine.tiles));
  }
  if (!narrow(c, box)) return {};
  return box;
}

bool narrow(const Case& c, Box& box) {
  for (Box before{{}, {}}; !(box.lo == before.lo && box.hi == before.hi);) {
    before = box;
    for (std::int64_t Dims::* side : kSides) {
      const std::int64_t others = box.lo.product() / (box.lo.*side);
      box.hi.*side = std::min({box.hi.*side, c.grains.*side, c.machine.tiles / others});
      const auto least = next_count(c, side, box.lo.*side);
      if (!least || *least > box.hi.*side) return false;
      box.lo.*side = *least;
      box.hi.*side = previous_count(c, side, box.hi.*side);
    }
  }
  return true;
}

BoxParts parts_of(const Box& box) {
  // The first of x, y and z that has the largest ratio of its ends.
  std::int64_t Dims::* side = *std::ranges::max_element(kSides, {}, [&box](auto one) {
    return (double(box.hi.*one) + 1) / (double(box.lo.*one) + 1);
  });
  const std::int64_t lo = box.lo.*side, hi = box.hi.*side;
  BoxParts parts;
  const auto add = [&](std::int64_t first, std::int64_t last) {
    Box& part = parts.boxes[parts.count++] = box;
    part.lo.*side = first;
    part.hi.*side = last;
  };
  if (hi - lo < kMostBoxParts) {
    for (std::int64_t count = lo; count <= hi; ++count) add(count, count);
  } else {
    // Square roots and products of doubles are correctly rounded.
    const auto middle = std::int64_t(std::sqrt(double(lo)) * std::sqrt(double(hi)));
    const std::int64_t last = std::clamp(middle, lo, hi - 1);
    add(lo, last);
    add(last + 1, hi);
  }
  return parts;
}

}  // namespace tessera::planner::internal
