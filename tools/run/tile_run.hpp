#pragma once

#include "tessera/tools/run/run.hpp"

namespace tessera::tools {

class Progress;

// Encodes, runs and checks a layer, a static layer or a product on a modelled machine, by the plan
// of the report, as far as the arguments ask. Adds figures, passes, notes and results to the run.
// After an interrupt, or at the deadline, the remaining passes are left out and the report is
// partial. Throws the errors of the layers, and Error{NoSolution} with a remedy if the pattern does
// not fit its buckets.
void build_and_run(const Arguments& arguments, const Weights& weights, LayerRun& run,
                   Progress& progress);

}  // namespace tessera::tools
