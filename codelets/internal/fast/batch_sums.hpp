#pragma once

#include <cstdint>
#include <span>

namespace tessera::codelets::internal {

// The arguments of batch_sums(): blocks of 16 x 16 values that share their rows and follow one
// another in memory, for operands with the batch first:
//   out[z][i] += values[b][i][j] * in[z][columns[b] + j]
// Order of additions to one output: b after b, inside a block j after j, as in block_sums().
struct BatchSums {
  std::span<const std::uint32_t> columns;
  const float* values;
  const float* in;
  std::int64_t in_stride;
  float* out;
  std::int64_t out_stride;
  std::int64_t z;
  bool replaces;  // out counts as zeros
};
void batch_sums(const BatchSums& sums) noexcept;

}  // namespace tessera::codelets::internal
