#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/planner/solver/internal/propagators.hpp"

namespace tessera::planner::solver::internal {

namespace {

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
  return !c.function->lower || narrow_from_lower_bound(c, dom, scratch);
}

}  // namespace tessera::planner::solver::internal
