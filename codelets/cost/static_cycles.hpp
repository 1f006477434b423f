#pragma once

#include <cstdint>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/codelets/cost/matmul_cycles.hpp"

// Cycles of the kernels for a pattern that never changes. They read constant words instead of
// searching buckets, so their formulas differ from those of matmul_cycles.hpp. The source of the
// figures is PopLibs' planner of static products. All functions are pure, never allocate and are
// O(1).
//
//   step = supervisor(rows, non-zeros of the tile)
//          + workers * max over workers of worker(rows, non-zeros of that worker)
namespace tessera::codelets {

// A kernel for a static pattern. Blocks are 1 x 1 or squares of 4, 8 or 16.
struct StaticKernel {
  BlockShape block;
  DataType type = DataType::Half;  // of values and sums; bfloat16 costs what half costs

  friend bool operator==(const StaticKernel&, const StaticKernel&) = default;
};

// Returns true if there is a kernel for blocks of this shape.
bool has_static_kernel(BlockShape block);

// Throws Error{InvalidArgument}, which names the block, if there is none.
void check_static_kernel(BlockShape block);

// Returns the largest block with a kernel into which blocks of this shape can be cut: 16, 8 or 4
// square if that divides both sides, else 1 x 1. Cutting keeps every value (sparse::with_block).
BlockShape static_kernel_block(BlockShape block);

// Returns the cycles of one worker for its rows and its non-zeros, with z batch columns of that
// worker. Elements are dealt to workers by rows, so z is that of the tile or half of it; blocks are
// dealt by columns, so every worker has all rows and blocks. Throws Error{InvalidArgument} if there
// is no kernel for the block or z < 0.
LinearCycles static_worker_cycles(const StaticKernel& kernel, std::int64_t z);

// Returns the cycles of the supervisor: starting, and loading the weights of every block. Zero for
// elements.
LinearCycles static_supervisor_cycles(const StaticKernel& kernel);

// Returns the cycles of clearing `bytes` of sums before the kernel. Zero for the kernels that
// clear their sums themselves: all but those of floats in blocks of 8 or 16.
Cycles static_zero_cycles(const StaticKernel& kernel, std::int64_t bytes, std::int64_t workers);

// Returns the cycles of a kernel of blocks on one tile: `rows` block rows with `blocks` blocks, and
// z batch columns, which the workers share as evenly as they can. O(1).
Cycles static_block_cycles(const StaticKernel& kernel, std::int64_t rows, std::int64_t blocks,
                           std::int64_t z, std::int64_t workers);

// Returns PopLibs' estimate of adding `depth` operands of n elements each: the additions of one
// vector take one cycle for each operand. Zero if depth is 1.
Cycles strided_reduce_cycles(std::int64_t n, std::int64_t depth, DataType type,
                             std::int64_t workers);

}  // namespace tessera::codelets
