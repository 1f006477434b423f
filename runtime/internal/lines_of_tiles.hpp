#pragma once

#include <utility>
#include <vector>

#include "tessera/base/tile_map.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/internal/reduce.hpp"

// Lines of tiles: the tiles of a pass whose cells differ along one axis only.
namespace tessera::runtime::internal {

// Calls visit(cell) for the first cell of each line along an axis, in the order of their tiles.
template <class Visit>
void for_each_line(const TileMap& map, std::int64_t Cell::* axis, const Visit& visit) {
  for (const TileId tile : map.all())
    if (const Cell cell = map.cell(tile); cell.*axis == 0) visit(cell);
}

// The slots of a slice of an operand: of a tile's share of it at home, and of all of it.
struct SliceSlots {
  device::SlotId home, here;
};

// Adds the gathers that bring the slices of an operand to the `sharers` tiles of a line, all of
// which need the same slice. Each has an equal share of its rows at home. rows_of(cell) are the
// rows of a slice, slots_of(cell) the SliceSlots of a cell, and senders_of(cell) is
// device::Gather::senders of its line.
template <class RowsOf, class SlotsOf, class SendersOf>
void gather_slices(std::vector<device::Gather>& gathers, const TileMap& map,
                   std::int64_t Cell::* axis, std::int64_t sharers, const RowsOf& rows_of,
                   const SlotsOf& slots_of, const SendersOf& senders_of) {
  for_each_line(map, axis, [&](Cell cell) {
    const std::int64_t rows = rows_of(cell);
    if (rows == 0) return;
    device::Gather slice;
    slice.senders = senders_of(cell);
    for (; cell.*axis < sharers; ++(cell.*axis)) {
      const SliceSlots slots = slots_of(cell);
      slice.pieces.push_back({slots.home, {0, share_of(rows, 1, sharers, cell.*axis).size()}});
      slice.destinations.push_back(slots.here);
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
