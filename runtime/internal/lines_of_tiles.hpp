#pragma once

#include <utility>
#include <vector>

#include "tessera/base/tile_map.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/internal/reduce.hpp"
#include "tessera/runtime/internal/tensor_home.hpp"

// Lines of tiles: the tiles of a pass whose cells differ along one axis only.
namespace tessera::runtime::internal {

// Calls visit(cell) for the first cell of each line along an axis, in the order of their tiles.
template <class Visit>
void for_each_line(const TileMap& map, std::int64_t Cell::* axis, const Visit& visit) {
  for (const TileId tile : map.all())
    if (const Cell cell = map.cell(tile); cell.*axis == 0) visit(cell);
}

// An operand of which all tiles of a line need the same slice. At home each of them has an equal
// share of the rows of the slice. Both homes have a share for each tile.
struct SharedSlices {
  const TensorHome &home, &slices;
  const TileMap &home_map, &map;  // the cells at home, and those that tiles need the slices of
  std::int64_t Cell::* axis;      // of the lines
  std::int64_t sharers;           // tiles of a line
};

// Adds the gathers that bring all shares of a slice to the tiles of its line. senders_of(slice) is
// device::Gather::senders of its line.
template <class SendersOf>
void gather_slices(std::vector<device::Gather>& gathers, const SharedSlices& of,
                   const SendersOf& senders_of) {
  for_each_line(of.home_map, of.axis, [&](Cell cell) {
    const auto here = [&] { return std::size_t(of.map.tile(cell).value); };
    if (of.slices.shares[here()].rows() == 0) return;
    device::Gather slice;
    slice.senders = senders_of(of.slices.shares[here()]);
    for (; cell.*of.axis < of.sharers; ++(cell.*of.axis)) {
      const HomeShare& share = of.home.shares[std::size_t(of.home_map.tile(cell).value)];
      slice.pieces.push_back({share.slot, {0, share.rows()}});
      slice.destinations.push_back(of.slices.shares[here()].slot);
    }
    if (slice.pieces.front().slot != slice.destinations.front())
      gathers.push_back(std::move(slice));
  });
}

// Returns the columns of a reduction along an axis with so many tiles. elements_of(cell) are those
// of a line's part of the result, and partial_of(tile) is the slot of a tile's partial sums.
template <class ElementsOf, class PartialOf>
std::vector<ReductionColumn> columns_along(const TileMap& map, std::int64_t Cell::* axis,
                                           std::int64_t tiles, const ElementsOf& elements_of,
                                           const PartialOf& partial_of) {
  std::vector<ReductionColumn> columns;
  for_each_line(map, axis, [&](Cell cell) {
    ReductionColumn& column = columns.emplace_back();
    column.elements = elements_of(cell);
    for (; cell.*axis < tiles; ++(cell.*axis)) {
      column.tiles.push_back(map.tile(cell));
      column.partials.push_back(partial_of(column.tiles.back()));
    }
  });
  return columns;
}

}  // namespace tessera::runtime::internal
