#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::tools {

// Returns the dense plan of a layer under the memory limit of the caller's options: the baseline
// that sparse plans are compared with. It is empty if no partition fits the machine.
std::optional<planner::DensePlan> dense_baseline(const Problem& problem,
                                                 const device::Machine& machine,
                                                 const planner::Options& options);

// The modelled cost of a sparse layer beside that of a dense one with the same passes.
struct DenseComparison {
  std::string_view sparse_name = "sparse";  // the representation, for example "4x4 blocks"
  planner::PlanCost sparse, dense;
  std::optional<double> pays_up_to;  // the density from which on dense costs less

  bool sparse_wins() const { return sparse.cycles < dense.cycles; }
};

// Returns whether a sparse layer pays, as one line: cycles of the first pass, the ratio to the
// dense pass, and the ratio of the whole step if there are more passes. If dense costs less, the
// line begins with that.
std::string verdict_line(const DenseComparison& comparison);

}  // namespace tessera::tools
