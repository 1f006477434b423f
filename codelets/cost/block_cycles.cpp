#include <algorithm>
#include <array>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/internal/method_cycles.hpp"

namespace tessera::codelets::internal {
namespace {

enum class Pair { HalfToFloat, HalfToHalf, FloatToFloat };

Pair pair_of(const MatMulKernel& kernel) {
  if (kernel.data_type == DataType::Float) return Pair::FloatToFloat;
  return kernel.partials_type == DataType::Float ? Pair::HalfToFloat : Pair::HalfToHalf;
}

// Cycles of the multiply loop. `fixed` has the values for z = 1, 2, and 3 or more.
struct LoopRow {
  std::int64_t start, per_z;
  std::array<std::int64_t, 3> fixed;
};

LoopRow loop_row(const MatMulKernel& kernel, std::int64_t side) {
  const Pair pair = pair_of(kernel);
  if (side == 4) {
    if (pair == Pair::HalfToFloat) return {26, 2, {17, 18, 19}};
    if (pair == Pair::HalfToHalf) return {26, 2, {15, 16, 17}};
    return {26, 4, {14, 14, 14}};
  }
  if (side == 8) {
    if (pair == Pair::HalfToFloat) return {20, 4, {22, 23, 23}};
    if (pair == Pair::HalfToHalf) return {23, 4, {19, 20, 20}};
    return {23, 8, {22, 22, 23}};
  }
  if (pair == Pair::HalfToHalf && kernel.conv_units >= 16) return {22, 4, {22, 23, 22}};
  return {23, 4, {24, 25, 24}};
}

// The number of times that the weights of one square are loaded: 16 x 16 needs 16 units to be
// loaded as a whole.
std::int64_t weight_loads(const MatMulKernel& kernel, std::int64_t side) {
  return side == 16 && kernel.conv_units < 16 ? 2 : 1;
}

// 1 if partial sums stay in registers from block to block of a row (forward), 0 if they do not
// (transposed).
std::int64_t retains_row(const MatMulKernel& kernel) { return kernel.method == Method::BlockFwd; }

}  // namespace

Squares squares_of(BlockShape block) {
  const std::int64_t shorter = std::min(block.rows, block.cols);
  const std::int64_t side = shorter <= 4 ? 4 : shorter <= 8 ? 8 : 16;
  return {side, ceil_div(block.rows, side) * ceil_div(block.cols, side)};
}

LinearCycles block_worker(const MatMulKernel& kernel, std::int64_t z) {
  const auto [side, count] = squares_of(kernel.block);
  const LoopRow row = loop_row(kernel, side);
  if (z == 0) return {row.start, 0, 0};
  const std::int64_t fixed = row.fixed[std::size_t(std::min<std::int64_t>(z, 3) - 1)];
  const std::int64_t square = fixed + z * row.per_z - 3 * retains_row(kernel);
  return {row.start, 0, count * weight_loads(kernel, side) * square};
}

LinearCycles block_load(const MatMulKernel& kernel) {
  const auto [side, count] = squares_of(kernel.block);
  const std::int64_t weights_per_load = kernel.data_type == DataType::Float ? 2 : 4;
  const std::int64_t square = side * side / weights_per_load + 3 + 12 * weight_loads(kernel, side);
  return {2, retains_row(kernel), count * square};
}

LinearCycles block_grad_w_worker(const MatMulKernel& kernel, std::int64_t z) {
  const auto [side, count] = squares_of(kernel.block);
  const Pair pair = pair_of(kernel);
  if (side == 4) {
    if (pair == Pair::FloatToFloat) return {27, 9, count * (45 + 12 * z)};
    return {26, 9, count * ((pair == Pair::HalfToFloat ? 33 : 29) + 6 * z)};
  }
  if (side == 8) {
    if (pair == Pair::FloatToFloat) return {24, 7, count * (208 + 48 * z)};
    return {26, 9, count * (113 + 24 * z)};
  }
  return {27, 9, count * ((pair == Pair::HalfToHalf ? 441 : 505) + 96 * z)};
}

namespace {

// Number of passes over a block; one pass takes 8 batch columns of floats or 16 of halves.
std::int64_t amp_passes(const MatMulKernel& kernel, std::int64_t z) {
  return ceil_div(z, kernel.data_type == DataType::Float ? 8 : 16);
}

}  // namespace

LinearCycles block_grad_w_amp_worker(const MatMulKernel& kernel, std::int64_t z) {
  const auto [side, count] = squares_of(kernel.block);
  const std::int64_t k = amp_passes(kernel, z);
  if (k == 0) return {5, 0, 0};
  const auto square = [k](std::int64_t pass, std::int64_t saved) {
    return pass * k - (k - 1) * saved;
  };
  const Pair pair = pair_of(kernel);
  if (side == 16) return {5, 0, count * square(32, 4)};
  if (side == 8)
    return {5, 0, count * (pair == Pair::FloatToFloat ? square(33, 2) : square(27, 4))};
  if (pair == Pair::FloatToFloat) return {5, 0, count * square(20, 1)};
  return {5, 0, count * (pair == Pair::HalfToFloat ? square(17, 2) : square(15, 1))};
}

LinearCycles block_grad_w_amp_load(const MatMulKernel& kernel, std::int64_t z) {
  const auto [side, count] = squares_of(kernel.block);
  const std::int64_t k = amp_passes(kernel, z);
  const std::int64_t run = 8, weights = 2 * side;
  if (k == 0) return {0, 8 + 32 - 10, 10};
  const std::int64_t square = 10 + 15 + 4 * (k - 1) + k * (run + weights);
  return {0, 8 + 32 - 10, count * square};
}

}  // namespace tessera::codelets::internal
