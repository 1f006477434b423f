#pragma once

#include <string>

namespace tessera::codelets {

// Returns the instruction set of this CPU that the vector kernels use, by its name in Highway, for
// example "AVX2". Thread-safe.
std::string instruction_set();

}  // namespace tessera::codelets
