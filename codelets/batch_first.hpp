#pragma once

#include <cstdint>

namespace tessera::codelets {

// The side of the blocks that batch_first_sums() can multiply.
inline constexpr std::int64_t kBatchFirstSide = 16;

// The arguments of batch_first_sums(): one visit to one bucket of blocks of 16 x 16 floats, as the
// Fwd kernels of kernel.hpp make it, for dense operands whose columns are contiguous, as a batch of
// samples is stored.
struct BatchFirstSums {
  const void* meta = nullptr;     // words of the bucket, up to its end marker
  std::int64_t word_bits = 32;    // 16 or 32
  const float* values = nullptr;  // the bucket's, in record order
  std::int64_t sub_group = 0;     // records of other cells are skipped
  const float* in = nullptr;      // [z][columns of the cell]
  std::int64_t in_stride = 0;     // elements from sample to sample
  float* out = nullptr;           // [z][rows of the cell]
  std::int64_t out_stride = 0;
  std::int64_t z = 0;     // samples
  bool replaces = false;  // as KernelArgs::replaces
};

// Sets or adds out[z][x] += sum over (x, y) of the cell: value(x, y) * in[z][y], with the bits of
// the Fwd kernel on transposed operands. Nothing is transposed but the values, 16 blocks at a time.
// Never allocates, throws or prints; thread-safe. Needs 2 * values * z flops.
void batch_first_sums(const BatchFirstSums& sums) noexcept;

}  // namespace tessera::codelets
