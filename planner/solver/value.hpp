#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace tessera::planner::solver {

// Every variable holds a whole number in [0, kMaxValue]. Products and sums are taken in 128 bits;
// an assignment whose result would leave that range is simply no solution.
using Value = std::int64_t;
inline constexpr Value kMaxValue = std::numeric_limits<Value>::max();

// A closed interval. The solver's domains have no holes.
struct Interval {
  Value lo = 0, hi = kMaxValue;

  friend bool operator==(const Interval&, const Interval&) = default;
  constexpr bool assigned() const { return lo == hi; }
  constexpr bool contains(Value v) const { return lo <= v && v <= hi; }
};

// The place of a variable, or of a priority group, in its model. Only a model makes them.
struct VarId {
  std::int32_t value = -1;
  friend auto operator<=>(const VarId&, const VarId&) = default;
};
// A group of variables that are branched on together, by its number in the model.
struct GroupId {
  std::int32_t value = -1;
  friend auto operator<=>(const GroupId&, const GroupId&) = default;
};

}  // namespace tessera::planner::solver
