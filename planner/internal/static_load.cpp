#include "tessera/planner/internal/static_load.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tessera/base/int_math.hpp"

namespace tessera::planner::internal {
namespace {

// Calls `visit(row, position)` for every block of the pattern, in the order of the pattern.
template <class Visit>
void for_each_block(const BlockPattern& pattern, const Visit& visit) {
  for (std::int64_t row = 0; row < pattern.block_rows; ++row)
    for (std::int64_t i = pattern.row_begin[std::size_t(row)];
         i < pattern.row_begin[std::size_t(row) + 1]; ++i)
      visit(row, std::size_t(i));
}

// Calls visit(line, tile, is_first) for the blocks of the lines, which are rows or columns: whether
// the block is the first of its line on the tile.
template <class Visit>
void for_each_on_tile(const BlockLines& lines, const std::vector<std::int32_t>& tile_of,
                      std::size_t tiles, const Visit& visit) {
  std::vector<std::int64_t> last(tiles, -1);  // line of each tile's last block
  for (std::int64_t line = 0; line + 1 < std::ssize(lines.begin); ++line)
    for (std::int64_t i = lines.begin[std::size_t(line)]; i < lines.begin[std::size_t(line) + 1];
         ++i) {
      const auto tile = std::size_t(tile_of[std::size_t(lines.block[std::size_t(i)])]);
      visit(line, tile, last[tile] != line);
      last[tile] = line;
    }
}

// Lists the rows of all tiles, whose numbers are known.
void list_rows(const BlockLines& rows, const std::vector<std::int32_t>& tile_of, StaticLoad& load) {
  for (const StaticTile& tile : load.tiles)
    load.row_begin.push_back(load.row_begin.back() + tile.rows);
  load.rows.resize(std::size_t(load.row_begin.back()));
  load.depth.assign(rows.begin.size() - 1, 0);
  std::vector<std::int64_t> next(load.row_begin.begin(), load.row_begin.end() - 1);
  for_each_on_tile(rows, tile_of, load.tiles.size(),
                   [&](std::int64_t row, std::size_t tile, bool is_first) {
                     if (is_first) {
                       load.rows[std::size_t(next[tile]++)] = {row, 0};
                       ++load.depth[std::size_t(row)];
                     }
                     ++load.rows[std::size_t(next[tile]) - 1].blocks;
                   });
}

// Returns the counts of blocks that lie in these rows and columns.
StaticLoad count_lines(const BlockLines& rows, const BlockLines& columns,
                       const std::vector<std::int32_t>& tile_of, std::size_t tiles) {
  StaticLoad load;
  load.tiles.assign(tiles, {});
  for_each_on_tile(rows, tile_of, tiles, [&](std::int64_t, std::size_t tile, bool is_first) {
    ++load.tiles[tile].blocks;
    load.tiles[tile].rows += is_first;
  });
  for_each_on_tile(columns, tile_of, tiles, [&](std::int64_t, std::size_t tile, bool is_first) {
    load.tiles[tile].columns += is_first;
  });
  list_rows(rows, tile_of, load);
  return load;
}

BlockLines blocks_by_row(const BlockPattern& pattern) {
  BlockLines rows{{pattern.row_begin.begin(), pattern.row_begin.end()},
                  std::vector<std::int64_t>(pattern.col.size())};
  std::iota(rows.block.begin(), rows.block.end(), 0);
  return rows;
}

// Returns the runs of one band of which none is heavier than `most`. A row that is heavier alone is
// cut in equal pieces.
std::vector<std::int64_t> runs_of_band(const BandedRows& rows, std::size_t band, double most,
                                       const RowRuns& rules) {
  std::vector<std::int64_t> runs;
  std::int64_t run = 0;
  double weight = 0;
  const auto close = [&] {
    if (run > 0) runs.push_back(run);
    run = 0;
    weight = 0;
  };
  const auto longest = std::max<std::int64_t>(1, std::int64_t(most - rules.row_weight));
  for (std::int64_t row = 0; row < rows.block_rows; ++row) {
    std::int64_t blocks = rows.at(band, row);
    if (blocks == 0) continue;
    if (weight + double(blocks) + rules.row_weight > most) close();
    if (rules.cut_long && blocks > longest) {
      const std::int64_t pieces = ceil_div(blocks, longest), piece = ceil_div(blocks, pieces);
      for (; blocks > piece; blocks -= piece) runs.push_back(piece);
    }
    run += blocks;
    weight += double(blocks) + rules.row_weight;
  }
  close();
  return runs;
}

StaticRuns runs_below(const BandedRows& rows, double most, const RowRuns& rules) {
  StaticRuns runs;
  for (std::size_t band = 0; band < rows.bands.blocks.size(); ++band)
    runs.push_back(runs_of_band(rows, band, most, rules));
  return runs;
}

std::int64_t count_runs(const StaticRuns& runs) {
  std::int64_t count = 0;
  for (const auto& band : runs) count += std::ssize(band);
  return count;
}

std::int64_t even_tiles(const BandedRows& rows, std::int64_t longest) {
  std::int64_t tiles = 0;
  for (const std::int64_t blocks : rows.bands.blocks) tiles += ceil_div(blocks, longest);
  return tiles;
}

// Gives the blocks of one band after the other to tiles.
class RunDealer {
 public:
  RunDealer(const BlockPattern& pattern, const BandedRows& rows, std::vector<std::int32_t>* tile_of,
            const std::vector<std::int64_t>& order)
      : pattern_(pattern),
        rows_(rows),
        tile_of_(tile_of),
        order_(order),
        next_(pattern.row_begin.begin(), pattern.row_begin.end() - 1),
        last_tile_(std::size_t(pattern.block_cols), -1) {
    load.depth.assign(std::size_t(pattern.block_rows), 0);
    if (tile_of != nullptr) tile_of->assign(pattern.col.size(), 0);
  }

  void deal(std::size_t band, const std::vector<std::int64_t>& runs) {
    std::int64_t at = 0, left_of_row = rows_.at(band, row(0));
    for (const std::int64_t run : runs) {
      load.tiles.push_back({.blocks = run});
      for (std::int64_t left = run; left > 0;) {
        while (left_of_row == 0) left_of_row = rows_.at(band, row(++at));
        const std::int64_t taken = std::min(left, left_of_row);
        take(row(at), taken);
        left -= taken;
        left_of_row -= taken;
      }
      load.row_begin.push_back(std::ssize(load.rows));
    }
  }

  StaticLoad load;

 private:
  std::int64_t row(std::int64_t at) const { return order_.empty() ? at : order_[std::size_t(at)]; }

  // Gives the next blocks of a row to the last tile.
  void take(std::int64_t row, std::int64_t blocks) {
    const auto index = std::int32_t(load.tiles.size() - 1);
    StaticTile& tile = load.tiles.back();
    const auto first = std::size_t(next_[std::size_t(row)]);
    next_[std::size_t(row)] += blocks;
    for (std::size_t i = first; i < first + std::size_t(blocks); ++i) {
      std::int32_t& last = last_tile_[std::size_t(pattern_.col[i])];
      tile.columns += last != index;
      last = index;
    }
    if (tile_of_ != nullptr) std::fill_n(tile_of_->begin() + std::ptrdiff_t(first), blocks, index);
    load.rows.push_back({row, blocks});
    ++load.depth[std::size_t(row)];
    ++tile.rows;
  }

  const BlockPattern& pattern_;
  const BandedRows& rows_;
  std::vector<std::int32_t>* tile_of_;
  const std::vector<std::int64_t>& order_;
  std::vector<std::int64_t> next_;       // [block rows] first block that no tile has
  std::vector<std::int32_t> last_tile_;  // [block columns] the last tile that has the column
};

}  // namespace

StaticLoad load_of(const StaticLayout& layout, const BlockPattern& pattern) {
  return count_lines(blocks_by_row(pattern), blocks_by_column(pattern), layout.tile_of,
                     layout.tiles.size());
}

StaticLoad load_of_transpose(const StaticLayout& layout, const BlockPattern& pattern) {
  return count_lines(blocks_by_column(pattern), blocks_by_row(pattern), layout.tile_of,
                     layout.tiles.size());
}

BlockPattern TransposedPattern::view() const {
  return {block, std::ssize(row_begin) - 1, block_cols, row_begin, col};
}

TransposedPattern transposed_pattern(const BlockPattern& pattern) {
  BlockLines by_column = blocks_by_column(pattern);
  TransposedPattern result{.block = {pattern.block.cols, pattern.block.rows},
                           .block_cols = pattern.block_rows,
                           .row_begin = std::move(by_column.begin),
                           .col = std::vector<std::int32_t>(pattern.col.size()),
                           .place = std::move(by_column.block)};
  std::vector<std::int32_t> row_of(pattern.col.size());
  for_each_block(pattern, [&](std::int64_t row, std::size_t i) { row_of[i] = std::int32_t(row); });
  for (std::size_t i = 0; i < row_of.size(); ++i)
    result.col[i] = row_of[std::size_t(result.place[i])];
  return result;
}

std::vector<std::int32_t> tiles_in_given_order(const std::vector<std::int32_t>& tile_of,
                                               const TransposedPattern& transposed) {
  std::vector<std::int32_t> result(tile_of.size());
  for (std::size_t i = 0; i < tile_of.size(); ++i)
    result[std::size_t(transposed.place[i])] = tile_of[i];
  return result;
}

BlockLines blocks_by_column(const BlockPattern& pattern) {
  BlockLines result{.begin = std::vector<std::int64_t>(std::size_t(pattern.block_cols) + 1, 0),
                    .block = std::vector<std::int64_t>(pattern.col.size())};
  for (const std::int32_t column : pattern.col) ++result.begin[std::size_t(column) + 1];
  std::partial_sum(result.begin.begin(), result.begin.end(), result.begin.begin());
  std::vector<std::int64_t> next = result.begin;
  for (std::size_t i = 0; i < pattern.col.size(); ++i)
    result.block[std::size_t(next[std::size_t(pattern.col[i])]++)] = std::int64_t(i);
  return result;
}

StaticLoad transposed_load(const StaticLoad& load, const std::vector<std::int32_t>& tile_of,
                           const BlockLines& blocks) {
  StaticLoad result;
  for (const StaticTile& tile : load.tiles)
    result.tiles.push_back({tile.blocks, tile.columns, tile.rows});
  list_rows(blocks, tile_of, result);
  return result;
}

BandedRows banded_rows(const BlockPattern& pattern, StaticBands bands) {
  BandedRows rows{.bands = std::move(bands), .block_rows = pattern.block_rows, .blocks = {}};
  const std::size_t count = rows.bands.blocks.size(), height = std::size_t(pattern.block_rows);
  rows.blocks.assign(count * height, 0);
  for (std::size_t row = 0; row < height; ++row) {
    std::size_t band = 0;
    for (std::int64_t i = pattern.row_begin[row]; i < pattern.row_begin[row + 1]; ++i) {
      while (pattern.col[std::size_t(i)] >= rows.bands.begin[band + 1]) ++band;
      ++rows.blocks[band * height + row];
    }
  }
  return rows;
}

StaticRuns even_runs(const BandedRows& rows, std::int64_t tiles) {
  if (std::ssize(rows.bands.blocks) > tiles) return {};
  std::int64_t longest = std::ranges::max(rows.bands.blocks), too_short = 0;
  while (longest - too_short > 1) {
    const std::int64_t middle = (longest + too_short) / 2;
    (even_tiles(rows, middle) > tiles ? too_short : longest) = middle;
  }
  StaticRuns runs;
  for (const std::int64_t blocks : rows.bands.blocks) {
    runs.emplace_back(std::size_t(ceil_div(blocks, longest)), longest);
    runs.back().back() = blocks - longest * (std::ssize(runs.back()) - 1);
  }
  return runs;
}

StaticRuns whole_row_runs(const BandedRows& rows, std::int64_t tiles, const RowRuns& rules) {
  if (std::ssize(rows.bands.blocks) > tiles) return {};
  // Halved until runs differ by less than a block, or 14 times.
  constexpr int kMostSteps = 14;
  double too_light = 0;
  double heavy =
      double(std::ranges::max(rows.bands.blocks)) + rules.row_weight * double(rows.block_rows);
  StaticRuns best = runs_below(rows, heavy, rules);
  for (int step = 0; step < kMostSteps && heavy - too_light > 0.5; ++step) {
    const double middle = (heavy + too_light) / 2;
    StaticRuns runs = runs_below(rows, middle, rules);
    const bool fits = count_runs(runs) <= tiles;
    if (fits) best = std::move(runs);
    (fits ? heavy : too_light) = middle;
  }
  return best;
}

StaticLoad deal_runs(const BlockPattern& pattern, const BandedRows& rows, const StaticRuns& runs,
                     std::vector<std::int32_t>* tile_of, const std::vector<std::int64_t>& order) {
  RunDealer dealer(pattern, rows, tile_of, order);
  for (std::size_t band = 0; band < runs.size(); ++band) dealer.deal(band, runs[band]);
  return std::move(dealer.load);
}

StaticLayout layout_of(const BlockPattern& pattern, const StaticCounts& counts,
                       const StaticBands& bands, const std::vector<std::int64_t>& tiles) {
  StaticRuns runs;
  for (std::size_t b = 0; b < tiles.size(); ++b) {
    const std::int64_t blocks = bands.blocks[b], run = ceil_div(blocks, tiles[b]);
    runs.emplace_back();
    for (std::int64_t tile = 0; tile < tiles[b]; ++tile)
      runs.back().push_back(std::clamp<std::int64_t>(blocks - tile * run, 0, run));
  }
  StaticLayout layout;
  layout.tiles =
      deal_runs(pattern, banded_rows(pattern, bands), runs, &layout.tile_of, counts.order_of_rows())
          .tiles;
  return layout;
}

}  // namespace tessera::planner::internal
