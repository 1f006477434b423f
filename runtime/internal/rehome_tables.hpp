#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/tile_map.hpp"
#include "tessera/partitioner/tile_grid.hpp"
#include "tessera/planner/layouts.hpp"

namespace tessera::runtime::internal {

using planner::MetCells;

// Returns the cells of `from` that cell `c` of `to` overlaps. `to` is the grid of the transpose.
MetCells met_cells(const partitioner::TileGrid& from, const partitioner::TileGrid& to, Cell c);

// One move of all buckets around the ring of tiles.
struct PassingMove {
  bool far = false;           // True: by stride() tiles. False: to the next tile
  std::int64_t distance = 0;  // from home, after the move
  bool wanted = false;        // True: some tile picks a value at this distance
};

// The tables by which tiles of the second layout find each value of their bucket. An entry is
//   below reach()      a position in the buckets that the tile has gathered,
//                      [overlapped cells][z][values_per_bucket]
//   reach() and above  after subtracting reach(), a position in the tile's own bucket of the first
//                      layout and in the buckets that pass, [distance][values_per_bucket]
//   kNone              no position: the place holds zero
class RehomeTables {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffU;

  RehomeTables(const partitioner::TileGrid& from, const partitioner::TileGrid& to,
               std::int64_t groups);

  // Takes, for each value of R of a group, its position in the value buckets of either layout,
  // [buckets][values_per_bucket]. Positions of the second layout that are not in `to` hold zeros.
  void set_pattern(std::int64_t group, std::span<const std::int64_t> from,
                   std::span<const std::int64_t> to);

  // Returns the table of a tile of the second layout.
  std::span<const std::uint32_t> of_tile(TileId tile) const;
  std::int64_t reach() const { return reach_; }

  // The number of tiles in the ring around which buckets move.
  std::int64_t ring() const { return std::max(from_map_.tiles(), to_map_.tiles()); }

  // The tiles of a far move: the square root of ring(), rounded up.
  std::int64_t stride() const { return stride_; }

  // Returns the moves that bring every bucket to all tiles that pick values from it, in any group.
  // The list is empty if all values are gathered. One distance needs at most
  // stride() + ring() / stride() moves.
  std::span<const PassingMove> moves() const { return moves_; }

  std::int64_t from_values() const { return from_values_; }
  std::int64_t to_values() const { return to_values_; }
  const TileMap& from_map() const { return from_map_; }
  const TileMap& to_map() const { return to_map_; }

 private:
  std::uint32_t entry(std::int64_t from, const MetCells& met, TileId tile, std::int64_t group,
                      std::vector<std::int64_t>& distances) const;
  void find_moves();

  partitioner::TileGrid from_, to_;
  TileMap from_map_, to_map_;
  std::int64_t from_values_, to_values_;  // of a bucket
  std::int64_t reach_ = 0, stride_ = 1;
  std::vector<MetCells> met_;                         // by bucket of `to`, of any group
  std::vector<std::uint32_t> entries_;                // [groups][buckets of `to`][to_values]
  std::vector<std::vector<std::int64_t>> distances_;  // by group, ascending
  std::vector<PassingMove> moves_;
};

}  // namespace tessera::runtime::internal
