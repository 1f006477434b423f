#pragma once

// Included before any header of Highway by every source that is compiled once per instruction set.
// Left out, because each further set lengthens the build and none of these changes a kernel's time:
//   AVX3_DL  adds to AVX3 only instructions on integers (off by default in Highway, too)
// Left out, because they cannot multiply and add with one rounding, which is what sums are made of:
//   SSSE3, SSE4, WASM; computers of before 2013 run plain C++
// Left out, because vectors of unknown size cannot stand in arrays, which hold our accumulators:
//   SVE, RVV; those computers use 128-bit vectors or plain C++.
// What remains on x86-64: AVX3 (AVX-512), AVX2 and plain C++ (SCALAR, with clang EMU128).
// ThreadSanitizer's build leaves out AVX2 as well: threads share no more there than with AVX3.
#ifdef __SANITIZE_THREAD__
#define TESSERA_DISABLED_HERE HWY_AVX2
#else
#define TESSERA_DISABLED_HERE 0
#endif
#define HWY_DISABLED_TARGETS                                                              \
  (HWY_SSSE3 | HWY_SSE4 | HWY_WASM | HWY_WASM_EMU256 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | \
   HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | TESSERA_DISABLED_HERE)

namespace tessera::codelets::internal {

// Compiling every access with a check takes minutes for eight vectors of sums, and a few vectors
// take all the ways through a kernel there are.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kInstrumented = true;
#else
inline constexpr bool kInstrumented = false;
#endif

}  // namespace tessera::codelets::internal
