#pragma once

#include <string>

#include "tessera/planner/plan_cost.hpp"

namespace tessera::planner::internal {

// Returns a part in percent of the whole; 0 if that is 0.
double percent_of(Cycles part, Cycles whole);

// Returns the terms of a pass that take cycles as text, one line each; or those that take memory,
// too.
enum class Shown { Cycles, CyclesAndMemory };
std::string terms_text(const PassCost& cost, Shown shown = Shown::Cycles);

}  // namespace tessera::planner::internal
