#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "tessera/planner/planner.hpp"

namespace tessera::planner {

// A limit for the functions below that every plan keeps.
inline constexpr Cycles kMostCycles{std::numeric_limits<std::int64_t>::max() - 1};

// Returns a plan with buckets that costs fewer than `cycles`, if plan() would find one. It is the
// first one that the search meets, which need not be the cheapest, so this takes a small part of
// the time of plan() unless the cheapest plan costs about as much. The other arguments, errors and
// threads are those of plan().
std::optional<Plan> sparse_plan_below(Cycles cycles, const Problem& problem,
                                      const device::Machine& machine, const Options& options = {},
                                      const PatternStats* stats = nullptr);

// The steps in which densities are searched: thousandths of all blocks.
inline constexpr std::int64_t kDensitySteps = 1000;

// Returns the highest density, in steps, up to which random patterns of the problem's blocks cost
// fewer than `cycles` with the methods and the partition of `like`, a plan with buckets of this
// layer at any density. The result is never less than `from`, which the caller knows to pay. Prices
// of a known plan take microseconds, where planning takes milliseconds.
std::int64_t highest_step_like(const Plan& like, Cycles cycles, const Problem& problem,
                               const device::Machine& machine, const Options& options,
                               std::int64_t from = 0);

}  // namespace tessera::planner
