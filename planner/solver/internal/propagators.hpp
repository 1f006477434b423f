#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/planner/solver/constraint.hpp"
#include "tessera/planner/solver/internal/domains.hpp"

namespace tessera::planner::solver::internal {

// Where a function's arguments are laid out, so that calls allocate nothing.
struct CallScratch {
  std::vector<Value> values;
  std::vector<Interval> boxes;
  std::int64_t calls = 0;  // of the caller's functions
};

// A constraint ready to run.
struct Posted {
  Kind kind = Kind::Equal;
  std::span<const VarId> a;
  VarId r;                                  // unused by relations
  const FunctionEntry* function = nullptr;  // Kind::Call only
};

// Narrows the intervals of `c`'s variables; false: no solution of `c` is left in them.
// Never removes a solution, and accepts a box of assigned variables exactly when it is a solution.
// Runs once, not to a fixpoint, unless reaches_fixpoint() says so. Strengths stand at each kind.
bool propagate(const Posted& c, Domains& dom, CallScratch& scratch);

// True if a run that follows a run of the same constraint, nothing else between, changes nothing.
bool reaches_fixpoint(const Posted& c);

// True if the constraint needs running only when one of its arguments becomes assigned.
bool waits_for_assignment(const Posted& c);

// The parts of propagate(), by family.
bool propagate_product(std::span<const VarId> a, VarId r, Domains& dom);
bool propagate_sum(std::span<const VarId> a, VarId r, Domains& dom);
bool propagate_max(std::span<const VarId> a, VarId r, Domains& dom);
bool propagate_min(std::span<const VarId> a, VarId r, Domains& dom);
bool propagate_ceil_div(VarId n, VarId d, VarId q, Domains& dom);
bool propagate_minimal_divisor(VarId n, VarId d, VarId q, Domains& dom);
bool propagate_floor_div(VarId n, VarId d, VarId q, Domains& dom);
bool propagate_mod(VarId n, VarId d, VarId r, Domains& dom);
bool propagate_factor_of(VarId a, VarId b, Domains& dom);
bool propagate_less(VarId a, VarId b, Domains& dom);
bool propagate_less_or_equal(VarId a, VarId b, Domains& dom);
bool propagate_equal(VarId a, VarId b, Domains& dom);
bool propagate_reified_less(VarId a, VarId b, VarId r, Domains& dom);
bool propagate_reified_less_or_equal(VarId a, VarId b, VarId r, Domains& dom);
bool propagate_reified_equal(VarId a, VarId b, VarId r, Domains& dom);
bool propagate_or(VarId a, VarId b, VarId r, Domains& dom);
bool propagate_and(VarId a, VarId b, VarId r, Domains& dom);
bool propagate_not(VarId a, VarId r, Domains& dom);
bool propagate_call(const Posted& c, Domains& dom, CallScratch& scratch);

}  // namespace tessera::planner::solver::internal
