#include "tessera/partitioner/tile_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "tessera/base/error.hpp"

namespace tessera::partitioner {
namespace {

[[noreturn]] void reject(std::string_view field, std::int64_t value, std::string_view legal) {
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("tile grid: {} is {}; it must be {}", field, value, legal));
}

void require_between(std::string_view field, std::int64_t value, std::int64_t least,
                     std::int64_t most) {
  if (value < least || value > most)
    reject(field, value, fmt::format("between {} and {}", least, most));
}

void check_axis(std::string_view axis, std::int64_t size, std::int64_t grain, std::int64_t splits) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
  require_between(fmt::format("block size along {}", axis), grain, 1, kLargest);
  require_between(fmt::format("size.{}", axis), size, 1, kLargest);
  if (size % grain != 0)
    reject(fmt::format("size.{}", axis), size, fmt::format("a multiple of the block's {}", grain));
  const std::int64_t grains = size / grain;
  require_between(fmt::format("splits.{}", axis), splits, 1, grains);
  if (share_of(size, grain, splits, splits - 1).size() <= 0)
    reject(fmt::format("splits.{}", axis), splits,
           fmt::format("a count that leaves no share of {} grains empty, as {} does", grains,
                       ceil_div(grains, ceil_div(grains, splits))));
}

void check_z(const TileGrid& grid) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
  require_between("size.z", grid.size.z, 1, kLargest);
  require_between("splits.z", grid.splits.z, 1, grid.size.z);
  require_between("z_grain", grid.z_grain, 1, grid.size.z);
  if (grid.size.z % (grid.splits.z * grid.z_grain) != 0)
    reject("size.z", grid.size.z,
           fmt::format("a multiple of splits.z * z_grain = {} * {}; pad the batch", grid.splits.z,
                       grid.z_grain));
}

void check_capacities(const TileGrid& grid) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
  require_between("meta_words", grid.meta_words, 1, kLargest);
  require_between("blocks", grid.blocks, 0, kLargest);
  if (grid.separate_grad_a && !grid.block.is_element())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("tile grid: separate GradA buckets hold elements, not blocks of {} x "
                            "{}; use the forward buckets for GradA",
                            grid.block.rows, grid.block.cols));
  require_between("grad_a_words", grid.grad_a_words, grid.separate_grad_a ? 1 : 0,
                  grid.separate_grad_a ? kLargest : 0);
}

}  // namespace

void check(const TileGrid& grid) {
  check_axis("x", grid.size.x, grid.block.rows, grid.splits.x);
  check_axis("y", grid.size.y, grid.block.cols, grid.splits.y);
  check_z(grid);
  if (grid.size.g != 1 || grid.splits.g != 1)
    reject("size.g", std::max(grid.size.g, grid.splits.g), "1: one grid for each group");
  require_between("workers", grid.workers, 1, 65535);
  if (grid.word_bits != 16 && grid.word_bits != 32) reject("word_bits", grid.word_bits, "16 or 32");
  const std::int64_t most_cells =
      grid.word_bits == 16 ? 65535 : std::numeric_limits<std::int32_t>::max();
  require_between("splits.x * splits.y", grid.splits.x * grid.splits.y, 1, most_cells);
  check_capacities(grid);
}

TileGrid with_capacity(const TileGrid& grid, double factor) {
  const auto grown = [factor](std::int64_t capacity) {
    constexpr double kLargest = std::numeric_limits<std::int32_t>::max();
    const double wanted =
        std::ceil(static_cast<double>(std::max<std::int64_t>(capacity, 1)) * factor);
    return static_cast<std::int64_t>(std::min(wanted, kLargest));
  };
  TileGrid result = grid;
  result.meta_words = grown(grid.meta_words);
  result.blocks = grown(grid.blocks);
  if (grid.separate_grad_a) result.grad_a_words = grown(grid.grad_a_words);
  return result;
}

}  // namespace tessera::partitioner
