#pragma once

#include <cstdint>

#include "tessera/tools/run/arguments.hpp"
#include "tessera/tools/run/pass_target.hpp"
#include "tessera/tools/run/weights.hpp"

namespace tessera::tools {

class Progress;

// Runs the passes of the problem for the whole batch of the arguments, on operands that are read
// from files or drawn from the seed. Each outcome goes to the target, and operands and results to
// the files if they are to be stored. After an interrupt the remaining passes are left out. Returns
// the number of passes that finished.
//
// The batch of the problem may be a part of the batch of the arguments. The layer then runs once
// for each part, the last of which is filled up with zeros; the verdicts cover every result of
// every run.
//
// If a fault is requested, a run without it comes first, for comparison. Throws Error{CheckFailed}
// if a self-check failed.
std::int64_t run_passes(PassTarget& target, const Problem& problem, const Weights& weights,
                        const Arguments& arguments, Files& files, Progress& progress);

}  // namespace tessera::tools
