#pragma once

#include <cstdint>
#include <vector>

#include "tessera/planner/static_plan.hpp"

// The family of cuts of static products: parts of the batch, bands of block columns, runs of
// blocks.
namespace tessera::planner::internal {

// The counts of a pattern that all cuts have in common.
struct StaticCounts {
  std::vector<std::int64_t> rows, columns;  // blocks of each block row and block column
  std::int64_t blocks = 0;
  // Rows and columns with more than a tenth of the mean number of blocks, at least 1.
  std::int64_t usual_rows = 1, usual_columns = 1;

  // Returns the share of blocks among the places in usual rows and columns, at most 1.
  double density() const;
  // Returns the block rows, those that are not usual behind the others.
  std::vector<std::int64_t> order_of_rows() const;
};

StaticCounts count_blocks(const BlockPattern& pattern);

// Bands of neighbouring block columns.
struct StaticBands {
  std::vector<std::int64_t> begin = {0};  // [bands + 1] first block column
  std::vector<std::int64_t> blocks;       // [bands]
  std::int64_t widest = 0;                // most columns of a band that have blocks

  std::int64_t width(std::size_t band) const { return begin[band + 1] - begin[band]; }
};

// Returns `asked` bands, or fewer: each takes columns until it has its even share of the blocks.
StaticBands bands_of(const StaticCounts& counts, std::int64_t asked);

// Returns the columns of each of `asked` parts of a batch in whole grains, or of fewer parts.
std::vector<std::int64_t> shares_of_batch(std::int64_t columns, std::int64_t asked,
                                          std::int64_t grain);

// Returns the tiles of each part, as PopLibs gives them: by the columns of the part, in whole
// groups of `grain` tiles; the last part gets the rest. A part without a tile has 0.
std::vector<std::int64_t> tiles_of_parts(const std::vector<std::int64_t>& shares,
                                         std::int64_t tiles, std::int64_t grain);

// Returns the tiles of each band, as PopLibs gives them: by its blocks, in whole groups of `grain`
// tiles. Empty if there are too few tiles.
std::vector<std::int64_t> tiles_of_bands(const StaticBands& bands, std::int64_t tiles,
                                         std::int64_t grain);

// Returns the smallest number of tiles that the planner gives away together: those of an exchange
// bus, or 1 on a machine that has fewer.
std::int64_t tile_grain(const device::Machine& machine);

}  // namespace tessera::planner::internal
