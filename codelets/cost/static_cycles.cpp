#include "tessera/codelets/cost/static_cycles.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::codelets {
namespace {

constexpr std::int64_t kLoadBytes = 8;  // of weights in a cycle

void check(const StaticKernel& kernel, std::int64_t z) {
  if (has_static_kernel(kernel.block) && z >= 0) return;
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("no static kernel for blocks of {}x{} with z {}; blocks must be 1x1, 4x4, "
                  "8x8 or 16x16, and z >= 0",
                  kernel.block.rows, kernel.block.cols, z));
}

// A row costs `row` and its first non-zero nothing more, so the first one is taken off again.
LinearCycles of_rows(std::int64_t start, std::int64_t row, std::int64_t further) {
  return {start, row - further, further};
}

LinearCycles half_elements(std::int64_t z) {
  if (z == 4) return of_rows(31, 7, 2);
  if (z == 8) return of_rows(31, 8, 3);
  const std::int64_t eights = z / 8, rest = z % 8 != 0;
  return of_rows(33, 11 + eights * 14 + rest * 9, eights * 3 + rest * 2);
}

LinearCycles float_elements(std::int64_t z) {
  if (z == 2) return of_rows(29, 5, 2);
  if (z == 4) return of_rows(30, 6, 3);
  const std::int64_t fours = z / 4, rest = z % 4 != 0;
  return of_rows(31, 12 + fours * 10 + rest * 10, fours * 3 + rest * 2);
}

LinearCycles half_blocks(std::int64_t side, std::int64_t z) {
  if (side == 4) return {17, 1, z <= 2 ? 7 + z : 13 + z};
  if (side == 8) return {13, 1, 14 + 2 * (z - 1)};
  return {13, 1, 19 + 4 * (z - 1)};
}

LinearCycles float_blocks(std::int64_t side, std::int64_t z) {
  if (side == 4) return {13, 1, 12 + 4 * (z - 1)};
  if (side == 8) return {13, 4, 19 + 8 * (z - 1)};
  return {16, 4, z == 1 ? 58 : 2 * (37 + 8 * (z - 1))};
}

bool is_float(const StaticKernel& kernel) { return kernel.type == DataType::Float; }

}  // namespace

bool has_static_kernel(BlockShape block) {
  return block.rows == block.cols &&
         (block.rows == 1 || block.rows == 4 || block.rows == 8 || block.rows == 16);
}

void check_static_kernel(BlockShape block) {
  if (!has_static_kernel(block))
    throw_invalid(
        fmt::format("no static kernel for blocks of {}x{}; they must be 1x1, 4x4, 8x8 or 16x16",
                    block.rows, block.cols));
}

BlockShape static_kernel_block(BlockShape block) {
  for (const std::int64_t side : {16, 8, 4})
    if (block.rows % side == 0 && block.cols % side == 0) return {side, side};
  return {1, 1};
}

LinearCycles static_worker_cycles(const StaticKernel& kernel, std::int64_t z) {
  check(kernel, z);
  if (kernel.block.is_element()) return is_float(kernel) ? float_elements(z) : half_elements(z);
  return is_float(kernel) ? float_blocks(kernel.block.rows, z) : half_blocks(kernel.block.rows, z);
}

LinearCycles static_supervisor_cycles(const StaticKernel& kernel) {
  check(kernel, 0);
  if (kernel.block.is_element()) return {};
  return {30, 17, 16 + kernel.block.area() * bytes_of(kernel.type) / kLoadBytes};
}

Cycles static_zero_cycles(const StaticKernel& kernel, std::int64_t bytes, std::int64_t workers) {
  check(kernel, 0);
  if (!is_float(kernel) || kernel.block.rows <= 4) return {};
  return Cycles((12 + ceil_div(bytes / kLoadBytes, workers)) * workers);
}

Cycles static_block_cycles(const StaticKernel& kernel, std::int64_t rows, std::int64_t blocks,
                           std::int64_t z, std::int64_t workers) {
  const std::int64_t sums = rows * kernel.block.rows * z * bytes_of(kernel.type);
  return static_supervisor_cycles(kernel)(rows, blocks) +
         workers * static_worker_cycles(kernel, ceil_div(z, workers))(rows, blocks) +
         static_zero_cycles(kernel, sums, workers);
}

Cycles strided_reduce_cycles(std::int64_t n, std::int64_t depth, DataType type,
                             std::int64_t workers) {
  if (depth == 1) return {};
  const bool half = bytes_of(type) == 2;
  const std::int64_t vectors = ceil_div(ceil_div(n, workers), half ? 8 : 4);
  return Cycles((16 + vectors * ((half ? 14 : 11) + depth - 1)) * workers);
}

}  // namespace tessera::codelets
