#pragma once

#include "tessera/runtime/report.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/sparse_fc_layer/arguments.hpp"

namespace tessera::tools {

// Plans, encodes, runs and checks what the arguments ask for. Throws Error as the stages do;
// Error{NoSolution} when there is no plan or the pattern does not fit its buckets.
runtime::LayerReport run_layer(const Arguments& arguments);

// What the program answers to the shell once it has run: kOk, or kCheckFailed when a result is
// wrong.
ExitCode exit_code_of(const runtime::LayerReport& report);

}  // namespace tessera::tools
