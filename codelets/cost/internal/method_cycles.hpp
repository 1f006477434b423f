#pragma once

#include "tessera/codelets/cost/matmul_cycles.hpp"

// The formula of each method. worker_cycles() and supervisor_load_cycles() select between them.
namespace tessera::codelets::internal {

LinearCycles element_worker(const MatMulKernel& kernel, std::int64_t z);
LinearCycles element_transpose_worker(const MatMulKernel& kernel, std::int64_t z);
LinearCycles element_grad_w_worker(const MatMulKernel& kernel, std::int64_t z);
LinearCycles block_worker(const MatMulKernel& kernel, std::int64_t z);
LinearCycles block_load(const MatMulKernel& kernel);
LinearCycles block_grad_w_worker(const MatMulKernel& kernel, std::int64_t z);
LinearCycles block_grad_w_amp_worker(const MatMulKernel& kernel, std::int64_t z);
LinearCycles block_grad_w_amp_load(const MatMulKernel& kernel, std::int64_t z);

// A block expressed as squares that the kernels support: `count` squares of side 4, 8 or 16.
struct Squares {
  std::int64_t side, count;
};
Squares squares_of(BlockShape block);

}  // namespace tessera::codelets::internal
