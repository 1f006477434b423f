#include "tessera/planner/internal/static_cut.hpp"

#include <algorithm>
#include <numeric>

#include "tessera/base/int_math.hpp"

namespace tessera::planner::internal {
namespace {

bool is_usual(std::int64_t count, std::int64_t blocks, std::int64_t lines) {
  constexpr double kLeastShareOfMean = 0.1;
  return double(count) > kLeastShareOfMean * double(blocks) / double(lines);
}

std::int64_t usual_lines(const std::vector<std::int64_t>& counts, std::int64_t blocks) {
  const auto lines = std::ssize(counts);
  return std::max<std::int64_t>(1, std::ranges::count_if(counts, [&](std::int64_t count) {
                                  return is_usual(count, blocks, lines);
                                }));
}

}  // namespace

double StaticCounts::density() const {
  return std::min(double(blocks) / (double(usual_rows) * double(usual_columns)), 1.0);
}

std::vector<std::int64_t> StaticCounts::order_of_rows() const {
  std::vector<std::int64_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::stable_partition(order, [&](std::int64_t row) {
    return is_usual(rows[std::size_t(row)], blocks, std::ssize(rows));
  });
  return order;
}

StaticCounts count_blocks(const BlockPattern& pattern) {
  StaticCounts counts;
  counts.blocks = pattern.blocks();
  counts.columns.assign(std::size_t(pattern.block_cols), 0);
  for (const std::int32_t column : pattern.col) ++counts.columns[std::size_t(column)];
  for (std::size_t row = 0; row < std::size_t(pattern.block_rows); ++row)
    counts.rows.push_back(pattern.row_begin[row + 1] - pattern.row_begin[row]);
  counts.usual_rows = usual_lines(counts.rows, counts.blocks);
  counts.usual_columns = usual_lines(counts.columns, counts.blocks);
  return counts;
}

StaticBands bands_of(const StaticCounts& counts, std::int64_t asked) {
  StaticBands bands;
  const std::int64_t share = ceil_div(counts.blocks, asked);
  std::size_t column = 0;
  for (std::int64_t band = 0; band < asked; ++band) {
    std::int64_t blocks = 0, used = 0;
    for (; blocks < share && column < counts.columns.size(); ++column) {
      blocks += counts.columns[column];
      used += counts.columns[column] != 0;
    }
    if (blocks == 0) break;
    bands.begin.push_back(std::int64_t(column));
    bands.blocks.push_back(blocks);
    bands.widest = std::max(bands.widest, used);
  }
  return bands;
}

std::vector<std::int64_t> shares_of_batch(std::int64_t columns, std::int64_t asked,
                                          std::int64_t grain) {
  const std::int64_t grains = ceil_div(columns, grain), share = ceil_div(grains, asked);
  std::vector<std::int64_t> shares;
  for (std::int64_t begin = 0; begin < grains; begin += share)
    shares.push_back(std::min(share, grains - begin) * grain);
  return shares;
}

std::vector<std::int64_t> tiles_of_parts(const std::vector<std::int64_t>& shares,
                                         std::int64_t tiles, std::int64_t grain) {
  const std::int64_t all = std::accumulate(shares.begin(), shares.end(), std::int64_t{1});
  const std::int64_t grains = ceil_div(tiles, grain), even = ceil_div(grains, std::ssize(shares));
  std::vector<std::int64_t> result;
  std::int64_t given = 0;
  for (const std::int64_t share : shares) {
    // One less than the share rounded up, so that enough is left for the last part.
    const std::int64_t by_columns = ceil_div(grains * share, all) - 1;
    result.push_back(std::min(std::max(by_columns, even) * grain, tiles - given));
    given += result.back();
  }
  result.back() += tiles - given;
  return result;
}

std::vector<std::int64_t> tiles_of_bands(const StaticBands& bands, std::int64_t tiles,
                                         std::int64_t grain) {
  const std::int64_t all =
      std::accumulate(bands.blocks.begin(), bands.blocks.end(), std::int64_t{0});
  std::vector<std::int64_t> result;
  std::int64_t left = tiles;
  for (std::size_t b = 0; b < bands.blocks.size(); ++b) {
    const std::int64_t blocks = bands.blocks[b], after = std::ssize(bands.blocks) - 1 - int(b);
    std::int64_t wanted = std::int64_t(double(blocks) * double(tiles) / double(all));
    if (wanted == 0) wanted = std::min(tiles, grain);
    const std::int64_t needed = ceil_div(blocks, ceil_div(blocks, wanted));
    wanted = after == 0 ? left : std::min(round_up(needed, grain), wanted);
    wanted = std::max(wanted / grain * grain, grain);
    const std::int64_t given = std::min({wanted, left, tiles - after * grain});
    if (given <= 0) return {};
    result.push_back(given);
    left -= given;
  }
  return result;
}

std::int64_t tile_grain(const device::Machine& machine) {
  return machine.tiles < machine.tiles_per_exchange_bus ? 1 : machine.tiles_per_exchange_bus;
}

}  // namespace tessera::planner::internal
