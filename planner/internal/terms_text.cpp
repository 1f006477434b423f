#include "tessera/planner/internal/terms_text.hpp"

#include <fmt/format.h>

namespace tessera::planner::internal {

double percent_of(Cycles part, Cycles whole) {
  return whole.value == 0 ? 0 : 100 * double(part.value) / double(whole.value);
}

std::string terms_text(const PassCost& cost, Shown shown) {
  std::string text;
  for (const CostTerm& term : cost.terms)
    if (term.cycles.value != 0 || (shown == Shown::CyclesAndMemory && term.temp.value != 0))
      text += fmt::format("  {:<29} {:>12} cycles {:>12} bytes\n", to_string(term.name),
                          term.cycles.value, term.temp.value);
  return text;
}

}  // namespace tessera::planner::internal
