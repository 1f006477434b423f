#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/planner/solver/constraint.hpp"
#include "tessera/planner/solver/internal/domains.hpp"
#include "tessera/planner/solver/internal/propagators.hpp"

// Tests of propagators against the truth, in the manner of Gecode. A test gives a propagator over
// variables 0, 1, ... and a predicate over points; the harness walks the boxes and the points.
namespace tessera::planner::solver::test {

using Point = std::vector<Value>;
using Box = std::vector<Interval>;
using Truth = std::function<bool(const Point&)>;

// One run of a propagator over the intervals of a box; false: failed.
using Propagate = std::function<bool(internal::Domains&)>;

// The solver's propagator of `kind` on variables 0 .. arguments - 1, result on the next one (none
// for relations). `function` is for Kind::Call.
Propagate make(Kind kind, int arguments, FunctionEntry function = {});
// The same with variable numbers of the caller's choice, so that one may stand in two places.
Propagate make_on(Kind kind, const std::vector<int>& arguments, int result,
                  FunctionEntry function = {});

// The box after runs to a fixpoint, nothing when one failed.
std::optional<Box> fixpoint(const Propagate& p, const Box& box);

// All points of a box, in ascending order. The box must be small.
std::vector<Point> points_of(const Box& box);
// All boxes [lo, hi] within [0, most] for each of `variables` variables.
std::vector<Box> all_boxes(std::size_t variables, Value most);
// `count` boxes of up to `widest` + 1 values per variable around the given corners, seeded.
std::vector<Box> boxes_near(const Point& corner, Value widest, int count, std::uint64_t seed);

// Each says what is wrong, or nothing. The checks on one box:
// no point that the truth accepts is lost, and no interval has grown;
std::optional<std::string> unsound(const Propagate& p, const Box& box, const Truth& truth);
// a point alone in a box is kept exactly when the truth accepts it;
std::optional<std::string> undecided(const Propagate& p, const Box& box, const Truth& truth);
// the fixpoint's interval of each of `variables` is the least that holds all true points.
std::optional<std::string> not_hull(const Propagate& p, const Box& box, const Truth& truth,
                                    const std::vector<int>& variables);
// one run leaves nothing for a second.
std::optional<std::string> not_settled(const Propagate& p, const Box& box);

// The same as assertions.
void expect_sound(const Propagate& p, const Box& box, const Truth& truth);
void expect_decides(const Propagate& p, const Box& box, const Truth& truth);
void expect_hull(const Propagate& p, const Box& box, const Truth& truth,
                 const std::vector<int>& variables);
void expect_settles(const Propagate& p, const Box& box);

}  // namespace tessera::planner::solver::test
