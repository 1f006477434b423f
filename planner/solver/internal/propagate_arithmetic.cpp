#include <algorithm>

#include "tessera/base/int_math.hpp"
#include "tessera/planner/solver/internal/propagators.hpp"

namespace tessera::planner::solver::internal {

namespace {

// Every product above the largest value acts the same, so it is cut here: the next factor fits too.
constexpr Wide kTooLarge = Wide{kMaxValue} + 1;

Wide capped_product(Wide a, Value b) { return std::min(a * b, kTooLarge); }

// The product of all lows and of all highs but those of factor `left_out`.
struct ProductBounds {
  Wide lo = 1, hi = 1;
};
ProductBounds product_bounds(std::span<const VarId> a, std::size_t left_out, const Domains& dom) {
  ProductBounds p;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (i == left_out) continue;
    const Interval d = dom[a[i]];
    p = {capped_product(p.lo, d.lo), capped_product(p.hi, d.hi)};
  }
  return p;
}

}  // namespace

// r == a[0] * a[1] * ...: r from all factors, then each factor from r and the others, rounded
// inwards. Any two of (factor, the others, r) assigned give the third exactly. O(n^2): n is small.
bool propagate_product(std::span<const VarId> a, VarId r, Domains& dom) {
  const ProductBounds all = product_bounds(a, a.size(), dom);
  if (!dom.narrow(r, all.lo, all.hi)) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Interval product = dom[r];
    const ProductBounds others = product_bounds(a, i, dom);
    Wide lo = 0, hi = kMaxValue;
    if (others.lo == kTooLarge)
      hi = 0;
    else if (others.lo > 0)
      hi = product.hi / static_cast<Value>(others.lo);
    if (others.hi == kTooLarge)
      lo = product.lo > 0 ? 1 : 0;
    else if (others.hi > 0)
      lo = ceil_div(product.lo, static_cast<Value>(others.hi));
    if (!dom.narrow(a[i], lo, hi)) return false;
  }
  return true;
}

// r == a[0] + a[1] + ...: the hull, in one run, if no variable occurs twice: the projections of the
// box and the plane, all taken from the bounds at the start. O(n).
bool propagate_sum(std::span<const VarId> a, VarId r, Domains& dom) {
  Wide lo = 0, hi = 0;
  for (const VarId v : a) {
    const Interval d = dom[v];
    lo += d.lo;
    hi += d.hi;
  }
  const Interval sum = dom[r];
  if (!dom.narrow(r, lo, hi)) return false;
  for (const VarId v : a) {
    const Interval d = dom[v];
    if (!dom.narrow(v, sum.lo - (hi - d.hi), sum.hi - (lo - d.lo))) return false;
  }
  return true;
}

// r == max(a): the hull in one run, if no variable occurs twice. A sole operand that can reach
// r.lo must reach it. O(n).
bool propagate_max(std::span<const VarId> a, VarId r, Domains& dom) {
  Value lo = 0, hi = 0;
  for (const VarId v : a) {
    const Interval d = dom[v];
    lo = std::max(lo, d.lo);
    hi = std::max(hi, d.hi);
  }
  if (!dom.narrow(r, lo, hi)) return false;
  const Interval max = dom[r];
  int candidates = 0;
  VarId candidate;
  for (const VarId v : a) {
    if (!dom.at_most(v, max.hi)) return false;
    if (dom[v].hi < max.lo) continue;
    ++candidates;
    candidate = v;
  }
  return candidates != 1 || dom.at_least(candidate, max.lo);
}

// r == min(a): the mirror image of max.
bool propagate_min(std::span<const VarId> a, VarId r, Domains& dom) {
  Value lo = kMaxValue, hi = kMaxValue;
  for (const VarId v : a) {
    const Interval d = dom[v];
    lo = std::min(lo, d.lo);
    hi = std::min(hi, d.hi);
  }
  if (!dom.narrow(r, lo, hi)) return false;
  const Interval min = dom[r];
  int candidates = 0;
  VarId candidate;
  for (const VarId v : a) {
    if (!dom.at_least(v, min.lo)) return false;
    if (dom[v].lo > min.hi) continue;
    ++candidates;
    candidate = v;
  }
  return candidates != 1 || dom.at_most(candidate, min.hi);
}

}  // namespace tessera::planner::solver::internal
