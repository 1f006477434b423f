#include <algorithm>

#include "tessera/base/int_math.hpp"
#include "tessera/planner/solver/internal/propagators.hpp"

namespace tessera::planner::solver::internal {

// q == ceil(n / d), which means d * (q - 1) < n <= d * q with d >= 1. Narrows each of q, n and d by
// the other two, rounded inwards. If two of them are assigned, the third is narrowed to its hull; q
// is also narrowed to its hull whenever its interval before the run does not bind. Costs O(1).
bool propagate_ceil_div(VarId n, VarId d, VarId q, Domains& dom) {
  if (!dom.at_least(d, 1)) return false;
  const Interval n0 = dom[n], d0 = dom[d];
  if (!dom.narrow(q, ceil_div(n0.lo, d0.hi), ceil_div(n0.hi, d0.lo))) return false;
  const Interval q1 = dom[q];
  const Wide least_n = q1.lo == 0 ? Wide{0} : Wide{d0.lo} * (q1.lo - 1) + 1;
  if (!dom.narrow(n, least_n, Wide{d0.hi} * q1.hi)) return false;
  const Interval n1 = dom[n];
  const Value least_d = q1.hi == 0 ? 1 : ceil_div(n1.lo, q1.hi);
  // q1.lo >= 2 implies n1.lo >= 1.
  const Value most_d = q1.lo <= 1 ? kMaxValue : (n1.hi - 1) / (q1.lo - 1);
  return dom.narrow(d, least_d, most_d);
}

// q == ceil(n / d), and d is the least divisor with that q: d == 1, or also q * (d - 1) < n.
// Narrows as propagate_ceil_div(); if n is assigned, it also moves the ends of d to the nearest
// divisors that are the least for their quotient. Costs O(1).
bool propagate_minimal_divisor(VarId n, VarId d, VarId q, Domains& dom) {
  if (!propagate_ceil_div(n, d, q, dom)) return false;
  const Interval n1 = dom[n], d1 = dom[d];
  if (d1.lo >= 2) {
    if (n1.hi == 0 || !dom.at_most(q, (n1.hi - 1) / (d1.lo - 1))) return false;
    if (!dom.at_least(n, Wide{dom[q].lo} * (d1.lo - 1) + 1)) return false;
  }
  const Interval q1 = dom[q];
  const Value most_d = n1.hi == 0 ? 1 : q1.lo == 0 ? kMaxValue : 1 + (n1.hi - 1) / q1.lo;
  if (!dom.at_most(d, most_d)) return false;
  const Interval n2 = dom[n], d2 = dom[d];
  if (!n2.assigned() || n2.lo == 0) return true;
  // The least divisor with the quotient of d2.lo is at most d2.lo. If it is less, d starts at the
  // least divisor of the next smaller quotient.
  const Value quotient = ceil_div(n2.lo, d2.lo);
  Value first = ceil_div(n2.lo, quotient);
  if (first < d2.lo) {
    if (quotient == 1) return false;
    first = ceil_div(n2.lo, quotient - 1);
  }
  return dom.narrow(d, first, ceil_div(n2.lo, ceil_div(n2.lo, d2.hi)));
}

// q == floor(n / d), which means q * d <= n < (q + 1) * d with d >= 1. Narrows as far, and costs as
// much, as propagate_ceil_div().
bool propagate_floor_div(VarId n, VarId d, VarId q, Domains& dom) {
  if (!dom.at_least(d, 1)) return false;
  const Interval n0 = dom[n], d0 = dom[d];
  if (!dom.narrow(q, n0.lo / d0.hi, n0.hi / d0.lo)) return false;
  const Interval q1 = dom[q];
  if (!dom.narrow(n, Wide{q1.lo} * d0.lo, (Wide{q1.hi} + 1) * d0.hi - 1)) return false;
  const Interval n1 = dom[n];
  const Wide least_d = n1.lo / (Wide{q1.hi} + 1) + 1;
  return dom.narrow(d, least_d, q1.lo == 0 ? kMaxValue : n1.hi / q1.lo);
}

// r == n mod d with d >= 1. Always keeps r < d and r <= n. If all of n is below d, r equals n. If
// only one quotient q is possible, r is narrowed by n - q * d. If d is assigned, the ends of n move
// to numbers whose remainder is within r. Costs O(1).
bool propagate_mod(VarId n, VarId d, VarId r, Domains& dom) {
  if (!dom.at_least(d, Wide{dom[r].lo} + 1)) return false;
  if (!dom.at_most(r, std::min(dom[n].hi, dom[d].hi - 1))) return false;
  if (!dom.at_least(n, dom[r].lo)) return false;
  const Interval d1 = dom[d];
  if (dom[n].hi < d1.lo) return propagate_equal(n, r, dom);
  const Interval n0 = dom[n];
  const Value quotient = n0.lo / d1.hi;
  if (n0.hi / d1.lo == quotient &&
      !dom.narrow(r, n0.lo - Wide{quotient} * d1.hi, n0.hi - Wide{quotient} * d1.lo))
    return false;
  if (!d1.assigned()) return true;
  // Finds the first and the last n whose remainder is in r's interval.
  const Interval n1 = dom[n], r1 = dom[r];
  const Value at_lo = n1.lo % d1.lo, at_hi = n1.hi % d1.lo;
  const Wide floor_lo = n1.lo - at_lo, floor_hi = n1.hi - at_hi;
  const Wide lo = at_lo < r1.lo   ? floor_lo + r1.lo
                  : at_lo > r1.hi ? floor_lo + d1.lo + r1.lo
                                  : Wide{n1.lo};
  const Wide hi = at_hi > r1.hi   ? floor_hi + r1.hi
                  : at_hi < r1.lo ? floor_hi - d1.lo + r1.hi
                                  : Wide{n1.hi};
  if (!dom.narrow(n, lo, hi)) return false;
  const Interval n2 = dom[n];
  if (n2.lo / d1.lo != n2.hi / d1.lo) return true;
  return dom.narrow(r, n2.lo % d1.lo, n2.hi % d1.lo);
}

// b divides a, with b >= 1. If b is assigned, a is narrowed to its hull. If a is assigned and not
// 0, the upper end of b moves down towards a divisor of a, by at most kSteps quotients per run, and
// the lower end moves up towards one in at most as many steps, each of which skips all numbers with
// the same quotient. Costs O(kSteps).
bool propagate_factor_of(VarId a, VarId b, Domains& dom) {
  constexpr int kSteps = 32;  // limit of one run; the next run continues from there
  if (!dom.at_least(b, 1)) return false;
  const Interval a0 = dom[a], b0 = dom[b];
  // Unless a may be 0, its interval must contain a multiple k * b with k >= 1.
  if (a0.lo > 0 && !dom.at_most(b, a0.hi)) return false;
  if (b0.assigned())
    return dom.narrow(a, Wide{ceil_div(a0.lo, b0.lo)} * b0.lo, a0.hi - a0.hi % b0.lo);
  if (a0.lo > 0 && !dom.at_least(a, b0.lo)) return false;
  if (!a0.assigned() || a0.lo == 0) return true;
  const Value n = a0.lo;
  for (int i = 0; i < kSteps && n % dom[b].hi != 0; ++i)
    if (!dom.at_most(b, n / ceil_div(n, dom[b].hi))) return false;
  for (int i = 0; i < kSteps && n % dom[b].lo != 0; ++i) {
    const Value quotient = n / dom[b].lo;  // b >= ceil(n / quotient) has a smaller quotient
    if (!dom.at_least(b, ceil_div(n, quotient))) return false;
  }
  return true;
}

}  // namespace tessera::planner::solver::internal
