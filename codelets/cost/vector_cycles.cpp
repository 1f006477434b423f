#include "tessera/codelets/cost/vector_cycles.hpp"

#include <algorithm>

#include "tessera/base/int_math.hpp"

namespace tessera::codelets {
namespace {

constexpr std::int64_t kDataPathBytes = 8;

std::int64_t vector_width(DataType type) { return kDataPathBytes / bytes_of(type); }

// One cycle for each vector, dealt to the workers. 10 cycles to find the worker's share, 5 to start
// the loop (3 if no remainder is possible).
Cycles vector_loop_cycles(std::int64_t bytes, std::int64_t workers) {
  if (bytes == 0) return {};
  return Cycles(workers * (15 + ceil_div(ceil_div(bytes, kDataPathBytes), workers)));
}

}  // namespace

Cycles zero_cycles(std::int64_t bytes, std::int64_t workers) {
  return vector_loop_cycles(bytes, workers);
}

Cycles copy_cycles(std::int64_t bytes, std::int64_t workers) {
  return vector_loop_cycles(bytes, workers);
}

Cycles cast_cycles(std::int64_t n, DataType from, DataType to, std::int64_t workers) {
  const std::int64_t share = ceil_div(n, workers);
  const std::int64_t narrower = std::min(vector_width(from), vector_width(to));
  return Cycles(workers * (26 + ceil_div(share, narrower)));
}

Cycles reduce_cycles(std::int64_t n, std::int64_t depth, DataType from, DataType to,
                     std::int64_t workers) {
  // One iteration takes two vectors; each remainder bit costs an iteration.
  const std::int64_t turn = 2 * vector_width(from), remainder = n % turn;
  std::int64_t turns = n / turn;
  for (std::int64_t bit = 1; bit < turn; bit *= 2) turns += (remainder & bit) != 0;
  const bool half = bytes_of(from) == 2;
  const std::int64_t turn_cycles = 3 * depth + (half ? 8 : 6) + (to == DataType::Float);
  const std::int64_t remainder_cycles = 2 * depth + (half ? 11 : 13);
  std::int64_t cycles = 32 + turns / workers * turn_cycles;
  if (turns % workers != 0) cycles += remainder != 0 ? remainder_cycles : turn_cycles;
  return Cycles(workers * cycles);
}

Cycles transpose_blocks_cycles(std::int64_t blocks, BlockShape block, DataType type,
                               std::int64_t workers) {
  const bool half = bytes_of(type) == 2;
  const std::int64_t grain = half ? 4 : 2, per_grain = half ? 4 : 3;
  const std::int64_t rows = ceil_div(block.rows, grain), cols = ceil_div(block.cols, grain);
  const std::int64_t share = ceil_div(blocks, workers);
  std::int64_t worker = 0;
  if (share == 0) return {};
  if (rows == 1 && cols == 1)
    worker = share == 1 ? 29 : 37 + (share - 2) * per_grain;
  else if (cols == 1)
    worker = 27 + share * (35 + per_grain * (rows - 2));
  else
    worker = 29 + share * (18 + rows * (12 + per_grain * (cols - 2)));
  return Cycles(7 + workers * worker);
}

Cycles rearrange_cycles(std::int64_t blocks, std::int64_t side, std::int64_t z, DataType type,
                        std::int64_t workers) {
  const bool half = bytes_of(type) == 2;
  const std::int64_t z_grain = half ? 16 : 8;
  const std::int64_t square = half ? ceil_div(side, 4) * 23 : ceil_div(side, 2) * 12;
  return Cycles(
      18 + workers * (34 + ceil_div(blocks, workers) * (3 + ceil_div(z, z_grain) * (3 + square))));
}

Cycles arrange_cycles(std::int64_t bytes, std::int64_t tiles, std::int64_t bytes_per_cycle) {
  return Cycles(ceil_div(ceil_div(bytes, tiles), bytes_per_cycle));
}

Cycles exchange_cycles(std::int64_t bytes, ExchangeWidth width) {
  return Cycles(ceil_div(bytes, width.bytes_per_cycle));
}

Cycles broadcast_cycles(std::int64_t bytes, std::int64_t consecutive, std::int64_t tiles,
                        ExchangeWidth width) {
  if (consecutive == tiles || consecutive % width.tiles_per_bus == 0)
    width.bytes_per_cycle *= width.tiles_per_bus;
  return exchange_cycles(bytes, width);
}

}  // namespace tessera::codelets
