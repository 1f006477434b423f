#include "tessera/planner/solver/internal/propagators.hpp"

namespace tessera::planner::solver::internal {

// The propagators of all relations and truth values reach the hull; each run costs O(1).

bool propagate_less(VarId a, VarId b, Domains& dom) {
  // Without this test, x < x would narrow x by one value per run.
  if (a == b) return false;
  return dom.at_most(a, Wide{dom[b].hi} - 1) && dom.at_least(b, Wide{dom[a].lo} + 1);
}

bool propagate_less_or_equal(VarId a, VarId b, Domains& dom) {
  return dom.at_most(a, dom[b].hi) && dom.at_least(b, dom[a].lo);
}

bool propagate_equal(VarId a, VarId b, Domains& dom) {
  const Interval at_a = dom[a], at_b = dom[b];
  return dom.narrow(a, at_b.lo, at_b.hi) && dom.narrow(b, at_a.lo, at_a.hi);
}

bool propagate_reified_less(VarId a, VarId b, VarId r, Domains& dom) {
  const Interval at_a = dom[a], at_b = dom[b];
  if (at_a.hi < at_b.lo && a != b) return dom.narrow(r, 1, 1);
  if (at_a.lo >= at_b.hi || a == b) return dom.narrow(r, 0, 0);
  if (!dom.at_most(r, 1)) return false;
  if (!dom[r].assigned()) return true;
  return dom[r].lo == 1 ? propagate_less(a, b, dom) : propagate_less_or_equal(b, a, dom);
}

bool propagate_reified_less_or_equal(VarId a, VarId b, VarId r, Domains& dom) {
  const Interval at_a = dom[a], at_b = dom[b];
  if (at_a.hi <= at_b.lo || a == b) return dom.narrow(r, 1, 1);
  if (at_a.lo > at_b.hi) return dom.narrow(r, 0, 0);
  if (!dom.at_most(r, 1)) return false;
  if (!dom[r].assigned()) return true;
  return dom[r].lo == 1 ? propagate_less_or_equal(a, b, dom) : propagate_less(b, a, dom);
}

namespace {

// Removes `v` from `from` if it is an end of that interval.
bool differ(VarId from, Value v, Domains& dom) {
  const Interval d = dom[from];
  return dom.narrow(from, d.lo == v ? Wide{v} + 1 : Wide{d.lo},
                    d.hi == v ? Wide{v} - 1 : Wide{d.hi});
}

}  // namespace

bool propagate_reified_equal(VarId a, VarId b, VarId r, Domains& dom) {
  const Interval at_a = dom[a], at_b = dom[b];
  if (a == b || (at_a.assigned() && at_a == at_b)) return dom.narrow(r, 1, 1);
  if (at_a.hi < at_b.lo || at_b.hi < at_a.lo) return dom.narrow(r, 0, 0);
  if (!dom.at_most(r, 1)) return false;
  if (!dom[r].assigned()) return true;
  if (dom[r].lo == 1) return propagate_equal(a, b, dom);
  if (at_a.assigned()) return differ(b, at_a.lo, dom);
  return !at_b.assigned() || differ(a, at_b.lo, dom);
}

bool propagate_or(VarId a, VarId b, VarId r, Domains& dom) {
  const Interval at_a = dom[a], at_b = dom[b];
  if (at_a.lo > 0 || at_b.lo > 0) return dom.narrow(r, 1, 1);
  if (at_a.hi == 0 && at_b.hi == 0) return dom.narrow(r, 0, 0);
  if (!dom.at_most(r, 1)) return false;
  if (dom[r].hi == 0) return dom.at_most(a, 0) && dom.at_most(b, 0);
  if (dom[r].lo == 0) return true;
  if (at_a.hi == 0 || a == b) return dom.at_least(b, 1);
  return at_b.hi != 0 || dom.at_least(a, 1);
}

bool propagate_and(VarId a, VarId b, VarId r, Domains& dom) {
  const Interval at_a = dom[a], at_b = dom[b];
  if (at_a.lo > 0 && at_b.lo > 0) return dom.narrow(r, 1, 1);
  if (at_a.hi == 0 || at_b.hi == 0) return dom.narrow(r, 0, 0);
  if (!dom.at_most(r, 1)) return false;
  if (dom[r].lo == 1) return dom.at_least(a, 1) && dom.at_least(b, 1);
  if (dom[r].hi == 1) return true;
  if (at_a.lo > 0 || a == b) return dom.at_most(b, 0);
  return at_b.lo == 0 || dom.at_most(a, 0);
}

bool propagate_not(VarId a, VarId r, Domains& dom) {
  const Interval at_a = dom[a];
  if (at_a.lo > 0) return dom.narrow(r, 0, 0);
  if (at_a.hi == 0) return dom.narrow(r, 1, 1);
  if (!dom.at_most(r, 1)) return false;
  if (!dom[r].assigned()) return true;
  return dom[r].lo == 1 ? dom.at_most(a, 0) : dom.at_least(a, 1);
}

}  // namespace tessera::planner::solver::internal
