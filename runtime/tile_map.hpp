#pragma once

#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/units.hpp"

namespace tessera::runtime {

// One cell of the partition of a group.
struct Cell {
  std::int64_t x = 0, y = 0, z = 0, g = 0;
  friend bool operator==(const Cell&, const Cell&) = default;
};

// Which tile works on which cell: the tiles of a group follow those of the group before, and inside
// a group PopSparse's two orders, the last named axis running fastest:
//   Yzx  Fwd, GradA, GradW with travelling buckets: a broadcast of S reaches neighbouring tiles
//   Xyz  GradW with travelling operands: the rounds over z stay among neighbours
enum class TileOrder { Yzx, Xyz };

// Which tile does which part of which group.
class TileMap {
 public:
  // splits.g counts the groups; every group has splits.x * splits.y * splits.z tiles.
  TileMap(Dims splits, TileOrder order) : splits_(splits), order_(order) {}

  const Dims& splits() const { return splits_; }
  std::int64_t tiles() const { return splits_.product(); }
  TileId tile(Cell c) const;
  Cell cell(TileId tile) const;
  // The cell of the same group `by` steps further along x, y and z, cyclically; they may be
  // negative.
  Cell moved(Cell c, Cell by) const;
  // All tiles in use, in order.
  std::vector<TileId> all() const;

 private:
  Dims splits_;
  TileOrder order_;
};

}  // namespace tessera::runtime
