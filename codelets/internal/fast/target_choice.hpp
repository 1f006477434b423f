#pragma once

// Every source that is compiled once per instruction set includes this file before any header of
// Highway. These sets are left out:
//   AVX3_DL            adds to AVX3 only instructions on integers (off by default in Highway, too).
//                      A further set lengthens the build, and this one changes no kernel's time.
//   SSSE3, SSE4, WASM  cannot multiply and add with one rounding, which all sums need. Computers
//                      from before 2013 run plain C++.
//   SVE, RVV           have vectors of unknown size, which cannot be stored in arrays, and our
//                      accumulators are arrays. Those computers use 128-bit vectors or plain C++.
// On x86-64 there remain AVX3 (AVX-512), AVX2 and plain C++ (SCALAR, with clang EMU128).
// Sanitized builds leave out AVX3: it takes long to compile and has the paths of AVX2.
#ifdef TESSERA_SANITIZED
#define TESSERA_DISABLED_HERE HWY_AVX3
#else
#define TESSERA_DISABLED_HERE 0
#endif
#define HWY_DISABLED_TARGETS                                                              \
  (HWY_SSSE3 | HWY_SSE4 | HWY_WASM | HWY_WASM_EMU256 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | \
   HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | TESSERA_DISABLED_HERE)

namespace tessera::codelets::internal {

// True in builds with sanitizers. Compiling eight vectors of sums with a check of every access
// takes minutes, and a few vectors exercise all paths through a kernel.
#ifdef TESSERA_SANITIZED
inline constexpr bool kInstrumented = true;
#else
inline constexpr bool kInstrumented = false;
#endif

}  // namespace tessera::codelets::internal
