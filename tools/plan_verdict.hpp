#pragma once

#include <optional>

#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/report/dense_verdict.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::tools {

// A plan beside the dense plan of the same layer.
struct PlanVerdict {
  planner::DensePlanResult dense;
  report::DenseComparison comparison;
};

// Returns whether a plan pays and, if it does not, what would. `ones` has the pattern of the layer
// as elements; nullptr: it is random. Returns no value in PopSparse's cost model, which leaves out
// costs that the dense plan has. Takes some
// times as long as planning the layer, most where dense wins and other blocks and batches are
// tried.
std::optional<PlanVerdict> plan_verdict(const planner::PlannedLayer& layer,
                                        const sparse::Csr<double>* ones);

}  // namespace tessera::tools
