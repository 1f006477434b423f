#pragma once

#include "tessera/runtime/report.hpp"
#include "tessera/tools/sparse_fc_layer/arguments.hpp"

namespace tessera::tools {

// Plans, encodes, runs and checks what the arguments ask for. Throws Error as the stages do;
// Error{NoSolution} when there is no plan or the pattern does not fit its buckets.
runtime::LayerReport run_layer(const Arguments& arguments);

}  // namespace tessera::tools
