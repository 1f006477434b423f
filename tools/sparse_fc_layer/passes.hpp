#pragma once

#include "tessera/runtime/fully_connected.hpp"
#include "tessera/tools/sparse_fc_layer/run.hpp"
#include "tessera/tools/sparse_fc_layer/weights.hpp"

namespace tessera::tools::internal {
class Progress;
}

namespace tessera::tools {

// Fwd and what the problem has beside it.
std::size_t passes_wanted(const Problem& problem);

// Runs the passes of the report's problem for the whole batch of the arguments, on operands of
// files or drawn from the seed, and adds them to the report, results to the files when they are to
// be kept. An interrupt between two passes leaves the rest out and makes the report partial. The
// batch of the problem may be a part of that batch: then the layer runs once a part, the last one
// filled up with zeros. Ledgers are those of one run (all cost the same: cycles depend on the
// pattern alone), verdicts cover every result of every run. What self-checks and faults have to say
// goes to the notes; Error{CheckFailed} where a self-check failed.
void run_passes(runtime::FullyConnected& layer, const Weights& weights, const Arguments& arguments,
                LayerRun& run, internal::Progress& progress);

}  // namespace tessera::tools
