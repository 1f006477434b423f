#pragma once

#include "tessera/codelets/internal/fast/vector_kernels.hpp"

namespace tessera::codelets::internal {

// block_sums() on the CPU's dot product of pairs of bfloat16 (AVX512_BF16), which Highway 1.0.3
// does not emit. False, with nothing done, where this CPU lacks it or blocks are not square with a
// side of 4, 8 or 16.
bool pair_sums(const BlockSums<BFloat16>& sums) noexcept;

// Can this CPU do it?
bool has_pair_sums();

}  // namespace tessera::codelets::internal
