#pragma once

#include <optional>
#include <string>

#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/plan_cost.hpp"
#include "tessera/planner/static_plan.hpp"

namespace tessera::planner {

// The bounds and the cut of PopLibs that a static plan is compared with.
struct StaticExplanation {
  StaticBounds bounds;                       // of Fwd
  std::optional<PlanCost> popsparse;         // PopLibs' cut, counted
  std::optional<StaticPlan> popsparse_plan;  // with PopLibs' own estimate
  std::string no_popsparse;                  // the reason why there is none
};

// Returns the lower bounds of the layer and PopLibs' cut of it. Takes about as long as a plan.
StaticExplanation explain_static(const Problem& problem, const BlockPattern& pattern,
                                 const device::Machine& machine, const StaticOptions& options);

// Returns the terms of the plan by pass with their share, lower bounds, the cuts that came next,
// and PopLibs' cut beside it. The result must have a plan.
std::string to_text(const StaticExplanation& explanation, const StaticPlanResult& result);

// Returns the same as a JSON object, without the terms.
std::string to_json(const StaticExplanation& explanation, const StaticPlanResult& result);

}  // namespace tessera::planner
