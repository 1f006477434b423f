#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace tessera::planner::solver {

// The value of a variable: a whole number in [0, kMaxValue]. Products and sums are computed in 128
// bits. An assignment whose result would leave that range is not a solution; it is not an error.
using Value = std::int64_t;
inline constexpr Value kMaxValue = std::numeric_limits<Value>::max();

// A closed interval [lo, hi] of values. Every domain of the solver is one interval without holes.
struct Interval {
  Value lo = 0, hi = kMaxValue;

  friend bool operator==(const Interval&, const Interval&) = default;
  constexpr bool assigned() const { return lo == hi; }
  constexpr bool contains(Value v) const { return lo <= v && v <= hi; }
};

// The number of a variable in its model. Only Model creates valid ids; -1 marks none.
struct VarId {
  std::int32_t value = -1;
  friend auto operator<=>(const VarId&, const VarId&) = default;
};

// The number of a priority group in its model. The search assigns the variables of one group
// together. Only Model creates valid ids; -1 marks none.
struct GroupId {
  std::int32_t value = -1;
  friend auto operator<=>(const GroupId&, const GroupId&) = default;
};

}  // namespace tessera::planner::solver
