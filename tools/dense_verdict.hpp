#pragma once

#include <optional>
#include <string>

#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/report/dense_verdict.hpp"

namespace tessera::tools {

// Returns the dense plan of a layer under the memory limit of the caller's options: the baseline
// that sparse plans are compared with. If no partition fits the machine, it has the reason instead.
planner::DensePlanResult dense_baseline(const Problem& problem, const device::Machine& machine,
                                        const planner::Options& options);

// Returns the line "verdict    ..." with the text of report::verdict_text.
std::string verdict_line(const report::DenseComparison& comparison);

}  // namespace tessera::tools
