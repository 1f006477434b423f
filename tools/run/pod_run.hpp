#pragma once

#include "tessera/tools/run/arguments.hpp"

namespace tessera::tools {

// Plans, encodes, runs and checks a layer on a pod, prints the report and writes the files that the
// arguments ask for. Returns the exit code of the program. Throws the errors of the stages, and
// Error{NoSolution} if no grid fits or if the pattern does not fit the buckets of a device.
int run_pod_and_print(const Arguments& arguments, const char* program);

}  // namespace tessera::tools
