#pragma once

#include <string>

namespace tessera::codelets {

// Returns the instruction set that the vector kernels use, by its name in Highway, for example
// "AVX2": the best one of this CPU, or that of TESSERA_TARGET. Throws the error of
// allowed_instruction_sets() (base/instruction_sets.hpp). Thread-safe.
std::string instruction_set();

}  // namespace tessera::codelets
