#pragma once

#include <string>
#include <vector>

#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/report.hpp"
#include "tessera/tools/sparse_fc_layer/weights.hpp"

namespace tessera::tools {

// Runs the passes of `report.problem` for the whole batch of the arguments, on operands drawn from
// the seed, and adds them to the report. The batch of the problem may be a part of that batch: then
// the layer runs once a part, the last one filled up with zeros. Ledgers are those of one run (all
// cost the same: cycles depend on the pattern alone), verdicts cover every result of every run.
// Gives what self-checks and faults have to say. Error{CheckFailed} where a self-check failed.
std::vector<std::string> run_passes(runtime::FullyConnected& layer, const Weights& weights,
                                    const Arguments& arguments, runtime::LayerReport& report);

}  // namespace tessera::tools
