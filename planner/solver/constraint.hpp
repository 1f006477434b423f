#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tessera/planner/solver/value.hpp"

namespace tessera::planner::solver {

// The statement that a constraint makes about its arguments a[0], a[1], ... and, if it has one, its
// result r. A constraint that divides by 0 never holds. Every value but 0 counts as true; the
// results of comparisons and of logical operations are 0 or 1.
enum class Kind : std::uint8_t {
  Product,                // r == a[0] * a[1] * ...
  Sum,                    // r == a[0] + a[1] + ...
  Max,                    // r == max(a[0], a[1], ...)
  Min,                    // r == min(a[0], a[1], ...)
  CeilDiv,                // r == ceil(a[0] / a[1])
  CeilDivMinimalDivisor,  // CeilDiv, and no smaller a[1] >= 1 gives the same r
  FloorDiv,               // r == floor(a[0] / a[1])
  Mod,                    // r == a[0] mod a[1]
  FactorOf,               // a[1] divides a[0]
  Less,                   // a[0] < a[1]
  LessOrEqual,            // a[0] <= a[1]
  Equal,                  // a[0] == a[1]
  ReifiedLess,            // r == (a[0] < a[1])
  ReifiedLessOrEqual,     // r == (a[0] <= a[1])
  ReifiedEqual,           // r == (a[0] == a[1])
  Or,                     // r == (a[0] is true or a[1] is true)
  And,                    // r == (a[0] is true and a[1] is true)
  Not,                    // r == (a[0] is not true)
  Call                    // r == function(a[0], a[1], ...)
};

// A function of the caller. It returns the value for assigned arguments, or nullopt if these
// arguments belong to no solution. It must be pure (the same arguments always give the same answer)
// and return values in [0, kMaxValue]; the solver throws Error{InvalidArgument} for a negative
// value. Several threads may call it at the same time if several solvers use the model.
using Function = std::function<std::optional<Value>(std::span<const Value>)>;

// A lower bound of a function over a box of arguments, or nullopt if no solution is in the box. The
// bound must hold for every point of the box but need not be tight. An upper end may be as large as
// kMaxValue, so a bound must not multiply with it unchecked. The rules for purity and threads are
// those of Function.
using LowerBound = std::function<std::optional<Value>(std::span<const Interval>)>;

// A function of a model, together with the properties that the caller declared for it.
struct FunctionEntry {
  Function exact;
  LowerBound lower;  // may be empty
};

// One constraint as data. The checker and the propagators both read it; they share no code.
struct Constraint {
  Kind kind = Kind::Equal;
  std::int32_t first_argument = 0;  // index into the model's one list of arguments
  std::int32_t argument_count = 0;
  VarId result;                // value -1 if the constraint has no result
  std::int32_t function = -1;  // index into the model's functions, for Call only
};

}  // namespace tessera::planner::solver
