#pragma once

#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/units.hpp"

namespace tessera {

// One cell of the partition of a group.
struct Cell {
  std::int64_t x = 0, y = 0, z = 0, g = 0;
  friend bool operator==(const Cell&, const Cell&) = default;
};

// The order of cells on the tiles of a group, as in PopSparse; the axis named last runs fastest.
//   Yzx  for Fwd, GradA, and GradW with travelling buckets: a broadcast of S reaches neighbouring
//        tiles
//   Xyz  for GradW with travelling operands: the rounds over z stay among neighbours
enum class TileOrder { Yzx, Xyz };

// The mapping between cells and tiles. The tiles of a group follow those of the group before it.
class TileMap {
 public:
  // splits.g is the number of groups; every group has splits.x * splits.y * splits.z tiles.
  TileMap(Dims splits, TileOrder order) : splits_(splits), order_(order) {}

  const Dims& splits() const { return splits_; }
  TileOrder order() const { return order_; }

  std::int64_t tiles() const { return splits_.product(); }

  TileId tile(Cell c) const;

  Cell cell(TileId tile) const;

  // Returns the cell of the same group that is `by` steps further along x, y and z, cyclically;
  // steps may be negative.
  Cell moved(Cell c, Cell by) const;

  // Returns all tiles in use, in ascending order.
  std::vector<TileId> all() const;

 private:
  Dims splits_;
  TileOrder order_;
};

}  // namespace tessera
