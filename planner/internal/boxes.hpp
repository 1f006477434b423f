#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "tessera/planner/internal/layout.hpp"

namespace tessera::planner::internal {

// The box of all partitions with counts in lo .. hi in every dimension.
struct Box {
  Dims lo, hi;

  bool is_point() const { return lo == hi; }
};

// Returns the box of all partitions that obey the pins of a case, as narrow() leaves it, or nullopt
// if no partition does.
std::optional<Box> whole_box(const Case& c);

// Moves the ends of a box to counts that may be chosen and that fit on the tiles together with the
// least counts of the other sides. A count may be chosen if none smaller gives the same share of
// the side's grains; under Options::poplibs_parity, the count of z divides its grains. Returns
// false if no partition of the box is left.
bool narrow(const Case& c, Box& box);

// The parts of a box. A side of at most this many counts is split into single ones. On five models
// of tile splits, the limits 1 and 8 took 1 to 1.3 times the time of 4, and no limit took 1.6 to 21
// times.
inline constexpr std::int64_t kMostBoxParts = 4;
struct BoxParts {
  std::array<Box, kMostBoxParts> boxes;
  std::size_t count = 0;

  const Box* begin() const { return boxes.data(); }
  const Box* end() const { return boxes.data() + count; }
};

// Splits a box of more than one partition on its widest side into single counts or, if there are
// many, in two at the geometric mean of the ends, because costs divide and multiply counts and
// rarely add them. Splitting the sides in turn keeps the boxes square and their bounds tight. The
// parts are the same on every computer.
BoxParts parts_of(const Box& box);

}  // namespace tessera::planner::internal
