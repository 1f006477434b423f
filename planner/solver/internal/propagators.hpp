#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/planner/solver/constraint.hpp"
#include "tessera/planner/solver/internal/domains.hpp"

namespace tessera::planner::solver::internal {

// Buffers for the arguments of a function, so that calls allocate nothing.
struct CallScratch {
  std::vector<Value> values;
  std::vector<Interval> boxes;
  std::int64_t calls = 0;  // calls of the caller's functions so far
};

// A constraint in the form in which the propagators read it.
struct Posted {
  Kind kind = Kind::Equal;
  std::span<const VarId> a;
  VarId r;                                  // unused by relations
  const FunctionEntry* function = nullptr;  // Kind::Call only
};

// Narrows the intervals of `c`'s variables. Returns false if they hold no solution of `c`. It never
// removes a solution, and it accepts a box of assigned variables exactly if that is a solution. One
// call need not reach a fixpoint of `c` unless reaches_fixpoint() says so. A comment at each
// propagate_ function states how far it narrows.
bool propagate(const Posted& c, Domains& dom, CallScratch& scratch);

// Returns true if a second run directly after a run of the same constraint changes nothing.
bool reaches_fixpoint(const Posted& c);

// Returns true if the constraint needs to run only when one of its arguments becomes assigned.
bool waits_for_assignment(const Posted& c);

// The parts of propagate(), one for each kind of constraint.
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
