#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/planner/static_plan.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/tools/options/layer_arguments.hpp"

namespace tessera::tools {

// A layer with a static pattern, its plan and what it is compared with.
struct StaticAnswer {
  Problem problem;
  device::Machine machine;
  planner::StaticOptions options;
  std::vector<std::string> notes;
  planner::StaticPlanResult result;  // which has a plan

  // These are set if the plan is to be explained.
  std::optional<planner::StaticBounds> bounds;
  std::optional<planner::PlanCost> popsparse;         // PopLibs' cut, counted
  std::optional<planner::StaticPlan> popsparse_plan;  // with PopLibs' own estimate
  std::string no_popsparse;                           // the reason why there is none
};

// Plans the layer of a pattern of elements in the blocks of the arguments. Throws
// Error{NoSolution} if no plan fits, and the errors of static_options().
StaticAnswer plan_static_layer(const LayerArguments& arguments, const planner::Options& base,
                               const sparse::Csr<double>& elements, bool explain);

// Returns the plan and, if it was asked for, the explanation: terms by pass with their share,
// lower bounds, the cuts that came next, PopLibs' cut beside ours.
std::string to_text(const StaticAnswer& answer);

// Returns the same as JSON: the members problem, machine, notes, plan and explanation. `plan` is
// what planner::static_plan_from_json() reads.
std::string to_json(const StaticAnswer& answer);

}  // namespace tessera::tools
