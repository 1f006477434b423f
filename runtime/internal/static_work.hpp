#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/base/units.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/sparse/checked.hpp"

// The work of the tiles of a static layer: which blocks each of them multiplies for which columns
// of the batch, and which results several of them have in parts.
namespace tessera::runtime::internal {

// The blocks of one tile, as one pass reads them. GradA reads them transposed: its rows are block
// columns of R.
struct StaticTileBlocks {
  std::vector<std::int32_t> rows, columns;  // block rows and block columns that it has, ascending
  std::vector<std::int64_t> row_begin;      // [rows + 1] first block of each row
  std::vector<std::int32_t> column;         // [blocks] index in `columns`
  std::vector<std::int32_t> block;          // [blocks] place in the group's pattern; transposed:
                                            // in the list of the tile's own blocks
};

// The blocks of one tile and the columns of the batch for which it multiplies them. Parts of the
// batch with the same layout have the same blocks, which are stored once.
struct StaticWork {
  TileId tile;
  std::int64_t group = 0;
  std::size_t part = 0;  // index in StaticCut::parts
  Range z;               // columns of the padded batch
  std::shared_ptr<const StaticTileBlocks> own;
};

// A part of a run of results that one tile computes.
struct StaticPiece {
  std::int32_t work = 0;   // index of the tile's work
  std::int64_t first = 0;  // first element of the run in the tile's results
};

// Results that the same tiles compute, in the order in which their partial sums are added.
struct StaticRun {
  std::int64_t elements = 0;
  std::vector<StaticPiece> pieces;

  // Returns the elements that piece i adds up and keeps.
  Range share(std::size_t i) const {
    return share_of(elements, 1, std::ssize(pieces), std::int64_t(i));
  }
};

// The sizes that the operands of a static layer have on the machine.
struct StaticSizes {
  BlockShape block;
  DataType type = DataType::Half;
  Dims size;                 // in whole blocks and whole vectors of the batch
  std::int64_t z_grain = 1;  // columns of a vector
  std::int64_t tiles = 1;    // of a group; group g has the tiles from g * tiles on

  std::int64_t bytes() const { return bytes_of(type); }
};

// Columns of the batch of one group, and the tiles that multiply them. S, Q and their gradients are
// spread over these tiles in equal shares of rows.
struct StaticBatchPart {
  std::int64_t group = 0;
  Range z, tiles;

  // Returns the rows of an operand that are spread to tile `i` of the part.
  Range spread(std::int64_t rows, std::int64_t i) const {
    return share_of(rows, 1, tiles.size(), i);
  }
};

// The place of some values: the share of a run that a tile stores.
struct StaticHome {
  std::int32_t work = 0;
  std::size_t run = 0;     // index in StaticCut::gradients
  Range elements;          // of the run
  std::int64_t first = 0;  // place of the first value among the values of all tiles
};

// A static layer cut to tiles. The values of R are stored where GradW adds up their gradients: each
// tile has its shares of the runs of values. A cut for GradA alone stores none: it has neither runs
// nor homes.
struct StaticCut {
  StaticSizes sizes;
  std::vector<StaticBatchPart> parts;
  std::vector<StaticWork> works;  // in the order of their tiles
  std::vector<StaticRun> gradients;
  // Tile after tile; if all parts of the batch have the same layout, run after run instead, so that
  // the shares of a run follow one another.
  std::vector<StaticHome> homes;
  std::vector<Range> stored;              // [works] places of each tile's values among all
  bool runs_together = true;              // homes are in the order of runs
  std::vector<std::int64_t> first_value;  // [groups + 1] first of each group's values among all

  bool in_parts() const;  // true: the batch of some group is cut, so values go to several tiles

  // Calls visit(place, offset, count) for the runs of neighbouring values among `count` values of
  // a tile from `first` on, in the order of its blocks: `place` is among the values of all groups
  // in the order of their patterns, and `offset` is counted from `first`.
  template <class Visit>
  void for_each_place(std::int32_t work, std::int64_t first, std::int64_t count,
                      Visit&& visit) const {
    const StaticWork& of_tile = works[std::size_t(work)];
    const std::int64_t area = sizes.block.area();
    for (std::int64_t offset = 0; offset < count;) {
      const std::int64_t at = first + offset, inside = at % area;
      const std::int64_t run = std::min(area - inside, count - offset);
      visit(first_value[std::size_t(of_tile.group)] +
                of_tile.own->block[std::size_t(at / area)] * area + inside,
            offset, run);
      offset += run;
    }
  }

  // Returns the number of values that all tiles store.
  std::int64_t stored_values() const;

  // Returns the place of the first value of a home in the list of its tile's blocks.
  std::int64_t first_of(const StaticHome& home) const;
};

// Cuts a layer as its plans say, one for each group. Throws Error{InvalidArgument} if a plan is not
// one of its pattern, batch and number of tiles.
StaticCut cut_static(const StaticSizes& sizes, std::span<const sparse::CheckedCsr<float>> weights,
                     std::span<const planner::StaticPlan> plans);

// Cuts it as the plans say for GradA alone; groups whose plan has no tiles of its own for GradA are
// cut as for the other passes. Errors as cut_static().
StaticCut cut_grad_a(const StaticSizes& sizes, std::span<const sparse::CheckedCsr<float>> weights,
                     std::span<const planner::StaticPlan> plans);

// Returns the works with rows and columns exchanged.
std::vector<StaticWork> transposed(std::span<const StaticWork> works);

// Returns the runs of the results [rows][z] of the works: one for each block row of a group and
// part of the batch that some tile has.
std::vector<StaticRun> runs_of_rows(std::span<const StaticWork> works, std::int64_t block_rows);

}  // namespace tessera::runtime::internal
