#pragma once

// Every source that Highway compiles once per instruction set includes this file before any header
// of Highway. On x86-64, whose sets are the bits 0 to 14 of Highway's list in every version of it,
// two are used beside plain C++ (SCALAR by g++ 12, else EMU128): AVX3, which is AVX-512, and AVX2.
// These are left out:
//   SSE2, SSSE3, SSE4  cannot multiply and add with one rounding, which all sums need: their
//                      results would have other bits. Computers from before 2013 run plain C++.
//   AVX3_DL, ZEN4, SPR add to AVX3 only what no kernel uses, and each set lengthens the build.
//   SVE, RVV           have vectors of unknown size, which cannot be stored in arrays, and our
//                      accumulators are arrays. Those computers use 128-bit vectors or plain C++.
//   WASM               has no product and sum with one rounding.
// Sanitized builds leave out AVX3, which takes long to compile and has the paths of AVX2. A build
// for one computer (TESSERA_INSTRUCTION_SETS=native) has only the widest set of that computer:
// other computers run its plain C++, with the same bits.
#if defined(TESSERA_SANITIZED) || defined(TESSERA_WITHOUT_AVX3)
#define TESSERA_X86_TARGETS HWY_AVX2
#elif defined(TESSERA_WITHOUT_AVX2)
#define TESSERA_X86_TARGETS HWY_AVX3
#else
#define TESSERA_X86_TARGETS (HWY_AVX3 | HWY_AVX2)
#endif
#define HWY_DISABLED_TARGETS                                                                     \
  ((0x7FFF & ~TESSERA_X86_TARGETS) | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | \
   HWY_WASM | HWY_WASM_EMU256)
