#pragma once

#include "tessera/codelets/internal/fast/vector_kernels.hpp"

namespace tessera::codelets::internal {

// Computes block_sums() with the CPU's dot product of pairs of bfloat16 (AVX512_BF16), which
// Highway 1.0.3 does not emit. Returns false, and does nothing, if this CPU has no such instruction
// or if blocks are not square with a side of 4, 8 or 16.
bool pair_sums(const BlockSums<BFloat16>& sums) noexcept;

// True if this CPU has the instruction and needs less time for it than for converting and two
// fused products: Zen 4 and Zen 5 start as many dot products in a cycle as fused products, Sapphire
// Rapids a quarter as many.
bool pair_sums_are_fast();

}  // namespace tessera::codelets::internal
