#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tessera/planner/solver/value.hpp"

namespace tessera::planner::solver {

// What a constraint states about its arguments a[0], a[1], ... and, where it has one, its result r.
// A division by 0 is never true. "true" is any value but 0; results of comparisons are 0 or 1.
enum class Kind : std::uint8_t {
  Product,                // r == a[0] * a[1] * ...
  Sum,                    // r == a[0] + a[1] + ...
  Max,                    // r == max(a[0], a[1], ...)
  Min,                    // r == min(a[0], a[1], ...)
  CeilDiv,                // r == ceil(a[0] / a[1])
  CeilDivMinimalDivisor,  // the same, and no smaller a[1] >= 1 gives that r
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

// The value for assigned arguments; none: these arguments are no solution.
// Must be a pure function (same arguments, same answer) and return values in [0, kMaxValue]; a
// negative one is Error{InvalidArgument}. Solves on several threads call it at the same time.
using Function = std::function<std::optional<Value>(std::span<const Value>)>;

// A lower bound of the function over a box of arguments; none: no solution lies in the box.
// Must hold for every point of the box; need not be tight. An upper end may be as large as
// kMaxValue: do not multiply with it unchecked. Purity and threads as Function.
using LowerBound = std::function<std::optional<Value>(std::span<const Interval>)>;

// A function of a model with what is known of it.
struct FunctionEntry {
  Function exact;
  LowerBound lower;  // may be empty
};

// One constraint as data. Checker and propagators both read it and share nothing else.
struct Constraint {
  Kind kind = Kind::Equal;
  std::int32_t first_argument = 0;  // into the model's one list of arguments
  std::int32_t argument_count = 0;
  VarId result;                // value -1: none
  std::int32_t function = -1;  // into the model's functions, for Call
};

}  // namespace tessera::planner::solver
