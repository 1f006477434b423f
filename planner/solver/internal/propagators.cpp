#include "tessera/planner/solver/internal/propagators.hpp"

#include <algorithm>

namespace tessera::planner::solver::internal {

bool propagate(const Posted& c, Domains& dom, CallScratch& scratch) {
  const std::span<const VarId> a = c.a;
  switch (c.kind) {
    case Kind::Product:
      return propagate_product(a, c.r, dom);
    case Kind::Sum:
      return propagate_sum(a, c.r, dom);
    case Kind::Max:
      return propagate_max(a, c.r, dom);
    case Kind::Min:
      return propagate_min(a, c.r, dom);
    case Kind::CeilDiv:
      return propagate_ceil_div(a[0], a[1], c.r, dom);
    case Kind::CeilDivMinimalDivisor:
      return propagate_minimal_divisor(a[0], a[1], c.r, dom);
    case Kind::FloorDiv:
      return propagate_floor_div(a[0], a[1], c.r, dom);
    case Kind::Mod:
      return propagate_mod(a[0], a[1], c.r, dom);
    case Kind::FactorOf:
      return propagate_factor_of(a[0], a[1], dom);
    case Kind::Less:
      return propagate_less(a[0], a[1], dom);
    case Kind::LessOrEqual:
      return propagate_less_or_equal(a[0], a[1], dom);
    case Kind::Equal:
      return propagate_equal(a[0], a[1], dom);
    case Kind::ReifiedLess:
      return propagate_reified_less(a[0], a[1], c.r, dom);
    case Kind::ReifiedLessOrEqual:
      return propagate_reified_less_or_equal(a[0], a[1], c.r, dom);
    case Kind::ReifiedEqual:
      return propagate_reified_equal(a[0], a[1], c.r, dom);
    case Kind::Or:
      return propagate_or(a[0], a[1], c.r, dom);
    case Kind::And:
      return propagate_and(a[0], a[1], c.r, dom);
    case Kind::Not:
      return propagate_not(a[0], c.r, dom);
    case Kind::Call:
      return propagate_call(c, dom, scratch);
  }
  return false;
}

bool reaches_fixpoint(const Posted& c) {
  // Sum, Max and Min reach the hull in one run, but only if no variable occurs in them twice.
  const auto distinct = [&c] {
    for (std::size_t i = 0; i < c.a.size(); ++i) {
      if (c.a[i] == c.r) return false;
      for (std::size_t j = 0; j < i; ++j)
        if (c.a[i] == c.a[j]) return false;
    }
    return true;
  };
  switch (c.kind) {
    case Kind::Sum:
    case Kind::Max:
    case Kind::Min:
      return distinct();
    case Kind::Less:
    case Kind::LessOrEqual:
    case Kind::Equal:
      return true;
    case Kind::Call:
      return std::find(c.a.begin(), c.a.end(), c.r) == c.a.end();
    default:
      return false;
  }
}

bool waits_for_assignment(const Posted& c) { return c.kind == Kind::Call && !c.function->lower; }

}  // namespace tessera::planner::solver::internal
