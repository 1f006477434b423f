#pragma once

#include <string>

#include "tessera/planner/plan_cost.hpp"

namespace tessera::planner::internal {

// Returns the terms of a pass that take cycles as text, one line each.
std::string terms_text(const PassCost& cost);

}  // namespace tessera::planner::internal
