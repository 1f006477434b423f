#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/partitioner/tile_grid.hpp"
#include "tessera/runtime/tile_map.hpp"

namespace tessera::runtime::internal {

// The cells of the first layout that a cell of the second meets: a rectangle of them.
struct MetCells {
  Range x, y;

  std::int64_t count() const { return x.size() * y.size(); }
  bool holds(std::int64_t cx, std::int64_t cy) const {
    return cx >= x.begin && cx < x.end && cy >= y.begin && cy < y.end;
  }
  std::int64_t index(std::int64_t cx, std::int64_t cy) const {
    return (cx - x.begin) * y.size() + cy - y.begin;
  }
};
// `c` is a cell of `to`, the grid of the transpose.
MetCells met_cells(const partitioner::TileGrid& from, const partitioner::TileGrid& to, Cell c);

// One move of all buckets to the tile one or stride() further on, around all tiles.
struct PassingMove {
  bool far = false;           // by stride()
  std::int64_t distance = 0;  // from home, after the move
  bool wanted = false;        // some tile picks a value there
};

// Where a tile of the second layout finds each value of its bucket:
//   below reach()          in the buckets it has gathered, [met cells][z][values_per_bucket]
//   then                   in its own bucket of the first layout, and in those that pass by,
//                          [distance][values_per_bucket]
//   kNone                  nowhere: the place holds zero
class RehomeTables {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffU;

  RehomeTables(const partitioner::TileGrid& from, const partitioner::TileGrid& to,
               std::int64_t groups);

  // As RehomePass::set_pattern.
  void set_pattern(std::int64_t group, std::span<const std::int64_t> from,
                   std::span<const std::int64_t> to);

  // The table of a tile of the second layout.
  std::span<const std::uint32_t> of_tile(TileId tile) const;
  std::int64_t reach() const { return reach_; }
  // Tiles that buckets pass when they go round, and how many of them a far move skips.
  std::int64_t ring() const { return std::max(from_map_.tiles(), to_map_.tiles()); }
  std::int64_t stride() const { return stride_; }
  // The moves that bring every bucket past all tiles that pick from it, in any group; empty where
  // all values are gathered. At most stride() + ring() / stride() for one distance.
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
