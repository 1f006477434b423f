#pragma once

#include <cstdint>
#include <string>

namespace tessera {

// The environment variable that chooses the instruction set of all vector code of the process, for
// example TESSERA_TARGET=avx2: results of several sets, which should have the same bits, can then
// be compared on one computer. Its value is the name of a set in any case: AVX3 (which is
// AVX-512), AVX2, NEON, or SCALAR or EMU128, which are plain C++. Products of a dense library do
// not obey it.
inline constexpr const char* kInstructionSetVariable = "TESSERA_TARGET";

// Returns the bits of Highway's instruction sets that vector code may use: those of this CPU, or
// the chosen one and the sets that it contains. Throws Error{InvalidArgument} if the variable has a
// name that is unknown or not of this CPU. make_executor() calls it, so every program that computes
// does. The variable is read when the library is loaded, before any vector code runs. Thread-safe.
std::int64_t allowed_instruction_sets();

// Returns the value of the variable, empty if it is not set.
std::string chosen_instruction_set();

}  // namespace tessera
