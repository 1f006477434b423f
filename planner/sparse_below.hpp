#pragma once

#include <cstdint>
#include <limits>

#include "tessera/planner/planner.hpp"

namespace tessera::planner {

// A limit for the functions below that every plan keeps.
inline constexpr Cycles kMostCycles{std::numeric_limits<std::int64_t>::max() - 1};

// Returns true if plan() would find a plan with buckets that costs fewer than `cycles`. The first
// one that the search meets is enough, so this takes a small part of the time of plan() unless the
// cheapest plan costs about as much. The other arguments, errors and threads are those of plan().
bool has_sparse_plan_below(Cycles cycles, const Problem& problem, const device::Machine& machine,
                           const Options& options = {}, const PatternStats* stats = nullptr);

// The steps in which densities are searched: thousandths of all blocks.
inline constexpr std::int64_t kDensitySteps = 1000;

// Returns a density, in steps, from which on random patterns of the problem's blocks cost `cycles`
// or more: the next higher step has no plan with buckets below `cycles`. All steps pay if the
// result is kDensitySteps, and the result is never less than `from`, which the caller knows to pay.
//
// `like` has the methods and the partition of some plan of this layer at any density, or is
// nullptr. Plans are priced again at other densities, which takes microseconds, and only where none
// of the known ones costs less than `cycles` is one searched for. With the plan of the layer this
// takes about as long as plan(). Errors and threads are those of plan().
std::int64_t highest_step_below(Cycles cycles, const Problem& problem,
                                const device::Machine& machine, const Options& options,
                                const Plan* like, std::int64_t from = 0);

}  // namespace tessera::planner
