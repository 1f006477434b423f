#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/planner/internal/static_cut.hpp"

// The blocks, rows and columns that each tile of a static layout has, counted from the pattern.
namespace tessera::planner::internal {

// The blocks of one row on one tile.
struct RowOnTile {
  std::int64_t row = 0, blocks = 0;

  friend bool operator==(const RowOnTile&, const RowOnTile&) = default;
};

// The counts of a layout, from which the prices of all steps follow.
struct StaticLoad {
  std::vector<StaticTile> tiles;
  std::vector<std::int64_t> row_begin = {0};  // [tiles + 1] first entry of each tile in `rows`
  std::vector<RowOnTile> rows;                // rows ascend in a tile
  std::vector<std::int64_t> depth;            // [block rows] tiles that have blocks of the row

  std::span<const RowOnTile> rows_of(std::size_t tile) const {
    return {rows.data() + row_begin[tile], std::size_t(row_begin[tile + 1] - row_begin[tile])};
  }
};

// Returns the counts of any layout. Takes time in proportion to the blocks.
StaticLoad load_of(const StaticLayout& layout, const BlockPattern& pattern);

// Returns the counts of the same blocks on the same tiles with rows and columns exchanged.
StaticLoad load_of_transpose(const StaticLayout& layout, const BlockPattern& pattern);

// The blocks of a pattern line by line: its rows or its columns.
struct BlockLines {
  std::vector<std::int64_t> begin;  // [lines + 1] first entry of each line
  std::vector<std::int64_t> block;  // [blocks] places in the pattern, ascending in a line
};

BlockLines blocks_by_column(const BlockPattern& pattern);

// A pattern with rows and columns exchanged.
struct TransposedPattern {
  BlockShape block;
  std::int64_t block_cols = 0;
  std::vector<std::int64_t> row_begin;
  std::vector<std::int32_t> col;
  std::vector<std::int64_t> place;  // [blocks] of each block in the pattern that was given

  // Returns a view of the arrays, which must stay where they are.
  BlockPattern view() const;
};

TransposedPattern transposed_pattern(const BlockPattern& pattern);

// Returns the tiles of the blocks of the pattern that was given, from the tiles of the transposed
// one.
std::vector<std::int32_t> tiles_in_given_order(const std::vector<std::int32_t>& tile_of,
                                               const TransposedPattern& transposed);

// Returns what load_of_transpose() returns for the layout of `load`, whose tiles of blocks are
// `tile_of`. One pass over the blocks.
StaticLoad transposed_load(const StaticLoad& load, const std::vector<std::int32_t>& tile_of,
                           const BlockLines& blocks);

// The blocks that each row has in each of several bands.
struct BandedRows {
  StaticBands bands;
  std::int64_t block_rows = 0;
  std::vector<std::int32_t> blocks;  // [bands][block rows]

  std::int64_t at(std::size_t band, std::int64_t row) const {
    return blocks[band * std::size_t(block_rows) + std::size_t(row)];
  }
};

BandedRows banded_rows(const BlockPattern& pattern, StaticBands bands);

// The blocks of each tile: [bands][tiles of the band]. A tile takes the next blocks of its band, in
// which rows ascend, so a row may end on one tile and go on on the next.
using StaticRuns = std::vector<std::vector<std::int64_t>>;

// Returns the runs whose longest is as short as it can be with `tiles` tiles; all runs of a band
// but its last have this length. Empty if there are fewer tiles than bands.
StaticRuns even_runs(const BandedRows& rows, std::int64_t tiles);

// Rules of runs that end where rows end.
struct RowRuns {
  double row_weight = 0;  // blocks that a row counts besides its own
  bool cut_long = true;   // whether rows that are longer than a run are cut
};

// Returns runs that end where rows end, with the exception that the rules name. The heaviest run is
// about as light as it can be. Empty if there are fewer tiles than bands.
StaticRuns whole_row_runs(const BandedRows& rows, std::int64_t tiles, const RowRuns& rules);

// Returns the counts of the layout of these runs, as load_of() finds them. If `tile_of` is not
// null, it gets the tile of every block. Rows are dealt in this order, or as they ascend.
StaticLoad deal_runs(const BlockPattern& pattern, const BandedRows& rows, const StaticRuns& runs,
                     std::vector<std::int32_t>* tile_of = nullptr,
                     const std::vector<std::int64_t>& order = {});

// Returns PopLibs' distribution of the blocks over tiles: within a band they are ordered by row,
// rows that are not usual last, and each tile takes an equal run of them. `tiles` are those of each
// band. The counts are those of the pattern.
StaticLayout layout_of(const BlockPattern& pattern, const StaticCounts& counts,
                       const StaticBands& bands, const std::vector<std::int64_t>& tiles);

}  // namespace tessera::planner::internal
