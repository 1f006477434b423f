#include "tessera/planner/plan_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tessera::planner {

const CostTerm* PassCost::find(Term name) const {
  const auto it = std::ranges::find(terms, name, &CostTerm::name);
  return it == terms.end() ? nullptr : &*it;
}

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

void PlanCost::add(PassCost pass) {
  cycles += pass.cycles();
  temp = std::max(temp, pass.temp());
  passes.push_back(std::move(pass));
}

std::string to_csv(const PlanCost& cost) {
  std::string text = "pass,term,cycles,temporary_bytes\n";
  for (const PassCost& pass : cost.passes)
    for (const CostTerm& term : pass.terms)
      text += fmt::format("{},{},{},{}\n", to_string(pass.pass), to_string(term.name),
                          term.cycles.value, term.temp.value);
  return text;
}

}  // namespace tessera::planner
