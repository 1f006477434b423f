#include <algorithm>

#include "tessera/base/int_math.hpp"
#include "tessera/planner/solver/internal/propagators.hpp"

namespace tessera::planner::solver::internal {

namespace {

// All products above the largest value have the same effect, so they are cut at this value. The
// product with the next factor then fits in 128 bits.
constexpr Wide kTooLarge = Wide{kMaxValue} + 1;

Wide capped_product(Wide a, Value b) { return std::min(a * b, kTooLarge); }

// The products of the lower ends and of the upper ends of all factors except `left_out`.
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

// r == a[0] * a[1] * ...: narrows r by all factors, then each factor by r and the others, with
// quotients rounded inwards. If two of (factor, the others, r) are assigned, the third is exact.
// Costs O(n^2) for n factors; n is small.
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

// r == a[0] + a[1] + ...: reaches the hull in one run if no variable occurs twice. The bounds are
// the projections of the intersection of the box and the plane, computed from the intervals at the
// start. Costs O(n).
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

// r == max(a): reaches the hull in one run if no variable occurs twice. If only one operand can
// reach the lower end of r, it must reach it. Costs O(n).
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

// r == min(a): the mirror image of propagate_max().
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
