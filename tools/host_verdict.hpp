#pragma once

#include <functional>
#include <optional>

#include "tessera/report/dense_verdict.hpp"
#include "tessera/report/host_plan.hpp"
#include "tessera/report/host_report.hpp"
#include "tessera/tools/layer_arguments.hpp"

namespace tessera::tools {

// Returns the number of blocks of a shape that a pattern occupies.
using BlocksAs = std::function<double(BlockShape)>;

// Returns the number that is expected of a uniform random pattern of the problem's blocks.
double expected_blocks(const Problem& problem, BlockShape block);

// Returns the forecast of the fastest sparse form of R beside that of the dense one.
report::DenseComparison host_plan_verdict(const report::HostPlan& plan, const BlocksAs& blocks_as);

// Returns the measured passes of a run beside the fastest dense product of this computer, which is
// measured with `threads` threads. A dense product that would take long or much memory is not
// measured; its forecast is taken. What is said of other densities, blocks and batches is forecast.
// Returns no value if no pass was measured or R is dense in all passes.
std::optional<report::DenseComparison> host_run_verdict(const LayerArguments& layer,
                                                        const report::HostReport& report,
                                                        const BlocksAs& blocks_as);

}  // namespace tessera::tools
