#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/planner/solver/internal/propagators.hpp"

namespace tessera::planner::solver::internal {

namespace {

enum class Corner { Least, Greatest };

std::optional<Value> checked(std::optional<Value> v) {
  if (v && *v < 0)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("solver call: a function returned {}; values must lie in [0, {}], "
                            "return no value for arguments that are no solution",
                            *v, kMaxValue));
  return v;
}

std::optional<Value> evaluate(const Posted& c, CallScratch& scratch) {
  ++scratch.calls;
  return checked(c.function->exact({scratch.values.data(), c.a.size()}));
}

bool all_assigned(const Posted& c, const Domains& dom) {
  for (const VarId v : c.a)
    if (!dom[v].assigned()) return false;
  return true;
}

// The function at one corner of the box; none also while an argument of unknown direction is open.
std::optional<Value> at_corner(const Posted& c, Corner corner, const Domains& dom,
                               CallScratch& scratch) {
  for (std::size_t i = 0; i < c.a.size(); ++i) {
    const Interval d = dom[c.a[i]];
    const Monotone direction = c.function->monotone[i];
    if (direction == Monotone::None && !d.assigned()) return std::nullopt;
    const bool low_end = (direction == Monotone::Increasing) == (corner == Corner::Least);
    scratch.values[i] = low_end ? d.lo : d.hi;
    if (scratch.values[i] > kLargestCorner && !d.assigned()) return std::nullopt;
  }
  return evaluate(c, scratch);
}

bool narrow_from_corners(const Posted& c, Domains& dom, CallScratch& scratch) {
  if (const auto least = at_corner(c, Corner::Least, dom, scratch))
    if (!dom.at_least(c.r, *least)) return false;
  const auto greatest = at_corner(c, Corner::Greatest, dom, scratch);
  return !greatest || dom.at_most(c.r, *greatest);
}

bool narrow_from_lower_bound(const Posted& c, Domains& dom, CallScratch& scratch) {
  for (std::size_t i = 0; i < c.a.size(); ++i) scratch.boxes[i] = dom[c.a[i]];
  ++scratch.calls;
  const auto least = checked(c.function->lower({scratch.boxes.data(), c.a.size()}));
  return least && dom.at_least(c.r, *least);
}

}  // namespace

bool propagate_call(const Posted& c, Domains& dom, CallScratch& scratch) {
  if (all_assigned(c, dom)) {
    for (std::size_t i = 0; i < c.a.size(); ++i) scratch.values[i] = dom[c.a[i]].lo;
    const auto exact = evaluate(c, scratch);
    return exact && dom.narrow(c.r, *exact, *exact);
  }
  if (c.function->lower) return narrow_from_lower_bound(c, dom, scratch);
  return c.function->monotone.empty() || narrow_from_corners(c, dom, scratch);
}

}  // namespace tessera::planner::solver::internal
