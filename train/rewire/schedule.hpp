#pragma once

#include <cstdint>
#include <string_view>

namespace tessera::train {

// Curves of the fraction of a rewire over the run.
enum class FractionDecay {
  Cosine,   // fraction / 2 * (1 + cos(pi * step / end))
  Linear,   // fraction * (1 - step / end)
  Constant  // fraction
};

// The steps at which a pattern is rewired, and the share of its blocks that then move. Steps are
// counted from 1. A rewire takes place at each multiple of `every` in [begin, end].
// Example: {.fraction = 0.3, .end = 3510}.at(100) is 0.2994, and at(101) is 0.
struct RewireSchedule {
  double fraction = 0.3;     // in [0, 1]
  std::int64_t begin = 1;    // at least 1
  std::int64_t end = 0;      // last step; RigL's authors take 3/4 of all steps. 0: never
  std::int64_t every = 100;  // at least 1
  FractionDecay decay = FractionDecay::Cosine;

  // Returns true if the pattern is rewired at this step.
  bool is_due(std::int64_t step) const;

  // Returns the share of the stored blocks that move at this step, 0 where no rewire is due.
  double at(std::int64_t step) const;

  friend bool operator==(const RewireSchedule&, const RewireSchedule&) = default;
};

// Throws Error{InvalidArgument}, which names the field, its value and its range, for a fraction
// outside [0, 1] or NaN, for `every` or `begin` below 1, and for an end that is before begin and
// not 0.
void check(const RewireSchedule& schedule);

// Curves of a density from its first to its last value. p rises from 0 to 1 between them.
enum class DensityCurve {
  Linear,      // first + (last - first) * p
  Cubic,       // last + (first - last) * (1 - p)^3
  Exponential  // first * (last / first)^p: each rewire removes the same share
};

// Returns "linear", "cubic" or "exponential".
const char* to_string(DensityCurve curve);

// The names of all curves can be read by named() (base/named.hpp).
inline constexpr auto kDensityCurves = {DensityCurve::Linear, DensityCurve::Cubic,
                                        DensityCurve::Exponential};

// A density that changes during a run: the steps at which a pattern is rewired take it from `first`
// to `last`, downwards or upwards.
// Example: {.last = 1.0 / 64, .end = 2000, .curve = DensityCurve::Linear}.at(1000) is 0.5078125.
struct DensitySchedule {
  double first = 1, last = 0.1;  // above 0, at most 1
  std::int64_t begin = 0;        // the density is `first` up to this step; at least 0
  std::int64_t end = 0;          // and `last` from this step on; above begin
  DensityCurve curve = DensityCurve::Cubic;

  // Returns the density of a step, counted from 1.
  double at(std::int64_t step) const;

  friend bool operator==(const DensitySchedule&, const DensitySchedule&) = default;
};

// Throws Error{InvalidArgument}, which names the field, its value and its range, for a number
// outside the ranges above, and if `rewires` has no step from the end of the densities on, at which
// the last density would be reached.
void check(const DensitySchedule& schedule, const RewireSchedule& rewires);

// Returns trunc(fraction * blocks), the number of blocks that a rewire drops. O(1).
std::int64_t blocks_to_drop(double fraction, std::int64_t blocks);

}  // namespace tessera::train
