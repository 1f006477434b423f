#include <algorithm>

#include "tessera/codelets/cost/internal/method_cycles.hpp"

namespace tessera::codelets::internal {
namespace {

// The columns of z are done in groups: fours in float, eights in half. A kernel runs through a row
// once for each group, and each time pays a fixed part for pointers, sums and the loop.
LinearCycles float_worker(const MatMulKernel& kernel, std::int64_t z, bool grad_a) {
  if (z == 4) return {grad_a ? 23 : 25, 13, 3};
  if (z == 2) return {grad_a ? 25 : 27, 11, 2};
  const bool estimate = kernel.poplibs_estimate;
  const std::int64_t groups = z / 4, row = estimate ? 14 : grad_a ? 11 : 13;
  const std::int64_t fixed = grad_a ? (estimate ? 10 : 11) : 12;
  LinearCycles cycles{grad_a ? 33 : 30, row, 3 * groups};
  cycles.per_row += fixed * (estimate ? std::min<std::int64_t>(groups, 1) : groups);
  if (z & 2) {
    cycles.per_row += 8;
    cycles.per_nonzero += 2 * (estimate ? z / 2 : 1);
  }
  if (z & 1) {
    cycles.per_row += 8;
    cycles.per_nonzero += 2;
  }
  cycles.per_row += z % 4 != 0 ? 2 : 0;
  return cycles;
}

LinearCycles half_estimate(std::int64_t z, bool grad_a) {
  LinearCycles cycles{grad_a ? 32 : 33, grad_a ? 11 : 12, 3 * (z / 8) + 2 * (z % 4)};
  if (z >= 8) cycles.per_row += grad_a ? 14 : 16;
  if (z & 4) {
    cycles.per_row += 13;
    cycles.per_nonzero += 2;
  }
  if (z % 4 != 0) cycles.per_row += grad_a ? 10 : 11;
  return cycles;
}

// Columns beyond the last group of four are groups of one.
LinearCycles half_worker(const MatMulKernel& kernel, std::int64_t z, bool grad_a) {
  if (z == 8) return {grad_a ? 26 : 28, 15, 3};
  if (z == 4) return {grad_a ? 28 : 30, 11, 2};
  if (kernel.poplibs_estimate) return half_estimate(z, grad_a);
  LinearCycles cycles{grad_a ? 32 : 33, grad_a ? 11 : 13, 3 * (z / 8) + 2 * (z % 4)};
  cycles.per_row += (grad_a ? 13 : 17) * (z / 8) + (grad_a ? 9 : 10) * (z % 4) + (z % 4 != 0);
  if (z & 4) {
    cycles.per_row += 13;
    cycles.per_nonzero += 2;
  }
  return cycles;
}

}  // namespace

LinearCycles element_worker(const MatMulKernel& kernel, std::int64_t z) {
  const bool grad_a = kernel.method == Method::ElementGradA;
  return kernel.data_type == DataType::Float ? float_worker(kernel, z, grad_a)
                                             : half_worker(kernel, z, grad_a);
}

LinearCycles element_transpose_worker(const MatMulKernel& kernel, std::int64_t z) {
  if (kernel.data_type == DataType::Float)
    return {23, 24 + 8, (z >= 2 ? 2 + 3 * (z / 2) : 0) + 4 * (z & 1)};
  if (z == 8) return {20, 18, 10};
  if (z == 4) return {20, 21, 7};
  return {26, 22 + 8, (z >= 4 ? 2 + 5 * (z / 4) : 0) + (z % 4 != 0 ? 5 + 3 * (z % 4) : 0)};
}

LinearCycles element_grad_w_worker(const MatMulKernel& kernel, std::int64_t z) {
  if (kernel.data_type == DataType::Float) {
    if (z == 4) return {30, 9, 5};
    if (z == 2) return {32, 7, 4};
    return {34, 9, 9 + z / 2 + (z & 1)};
  }
  if (z == 8) return {30, 11, 5};
  if (z == 4) return {32, 10, 4};
  return {35, 8, 11 + z / 4 + (z & 2 ? 3 : 0) + (z & 1 ? 4 : 0)};
}

}  // namespace tessera::codelets::internal
