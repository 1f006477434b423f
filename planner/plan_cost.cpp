#include "tessera/planner/plan_cost.hpp"

#include <algorithm>

namespace tessera::planner {

Cycles PassCost::cycles() const {
  Cycles sum;
  for (const CostTerm& term : terms) sum += term.cycles;
  return sum;
}

Bytes PassCost::temp() const {
  Bytes most;
  for (const CostTerm& term : terms) most = std::max(most, term.temp);
  return most;
}

const PassCost* PlanCost::find(Pass pass) const {
  const auto it = std::ranges::find(passes, pass, &PassCost::pass);
  return it == passes.end() ? nullptr : &*it;
}

}  // namespace tessera::planner
