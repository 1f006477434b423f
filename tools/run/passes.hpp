#pragma once

#include "tessera/tools/run/run.hpp"
#include "tessera/tools/run/weights.hpp"

namespace tessera::tools {
class Progress;
}

namespace tessera::tools {

// Returns the number of passes of the problem: Fwd and those that it has besides.
std::size_t passes_wanted(const Problem& problem);

// Runs the passes of the report's problem for the whole batch of the arguments, on operands that
// are read from files or drawn from the seed. Adds the passes to the report and, if they are to be
// stored, the results to the files. After an interrupt the remaining passes are left out and the
// report is partial.
//
// The batch of the problem may be a part of the batch of the arguments. The layer then runs once
// for each part, the last of which is filled up with zeros. The ledgers are those of one run,
// because cycles depend on the pattern alone and all runs cost the same; the verdicts cover every
// result of every run.
//
// The outcomes of self-checks and faults are added to the notes. Throws Error{CheckFailed} if a
// self-check failed.
// Layer is runtime::FullyConnected, runtime::StaticLayer or ProductLayer, which has only Fwd.
template <class Layer>
void run_passes(Layer& layer, const Weights& weights, const Arguments& arguments, LayerRun& run,
                Progress& progress);

}  // namespace tessera::tools
