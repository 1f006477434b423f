#pragma once

// Every source of kernels that is compiled once per instruction set includes this file before any
// header of Highway.
#include "tessera/base/vector_targets.hpp"

namespace tessera::codelets::internal {

// True in builds with sanitizers. Compiling eight vectors of sums with a check of every access
// takes minutes, and a few vectors exercise all paths through a kernel.
#ifdef TESSERA_SANITIZED
inline constexpr bool kInstrumented = true;
#else
inline constexpr bool kInstrumented = false;
#endif

}  // namespace tessera::codelets::internal
