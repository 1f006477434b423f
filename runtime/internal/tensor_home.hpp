#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/codelets/activation.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/planner/homes.hpp"
#include "tessera/runtime/internal/tile_program.hpp"

namespace tessera::runtime::internal {

// The part of a dense tensor in one slot of a tile.
struct HomeShare : planner::HomePiece {
  TileId tile;
  device::SlotId slot;

  std::int64_t row_of(std::int64_t element) const { return first_row + element / width; }
  std::int64_t col_of(std::int64_t element) const { return first_col + element % width; }
};

// The place of a dense tensor [rows][cols] in a network: the shares of it on the tiles, at most one
// a tile. Shares may have elements beyond rows and cols, which are padding.
struct TensorHome {
  std::int64_t rows = 0, cols = 0;
  BufferId buffer;
  std::vector<HomeShare> shares;

  // Returns the elements of a share as the codelets of a network take them.
  codelets::ElementRun run_of(const HomeShare& share) const {
    return {share.elements.begin, share.elements.end, share.width,
            planner::padding_of(share, rows, cols).columns};
  }
  // Returns the rows of a share without padding.
  Range rows_of(const HomeShare& share) const {
    const std::int64_t first = std::min(rows, share.row_of(share.elements.begin));
    return {first, std::min(rows, first + share.rows())};
  }
};

// The shares of a home by tile.
class SharesByTile {
 public:
  SharesByTile() = default;
  SharesByTile(const TensorHome& home, std::int64_t tiles);

  const std::vector<TileId>& tiles() const { return tiles_; }
  std::size_t index(TileId tile) const { return std::size_t(index_[std::size_t(tile.value)]); }

 private:
  std::vector<TileId> tiles_;        // that have a share, in the order of the shares
  std::vector<std::int32_t> index_;  // by tile; -1: none
};

// Returns a home without slots, with a share for each tile or for those that hold something.
enum class Shares { OfAllTiles, NotEmpty };
TensorHome tensor_home(const planner::Home& home, Shares shares = Shares::NotEmpty);

// Returns a home without slots of a tensor [rows][1], whose shares are the rows of these shares.
TensorHome rows_home(const TensorHome& home);

// Returns such a home of slices that a pass reads on all tiles, in this buffer; slot_of(tile) is
// the slot of a tile.
template <class SlotOf>
TensorHome slices_home(const planner::Home& home, BufferId buffer, const SlotOf& slot_of) {
  TensorHome slices = tensor_home(home, Shares::OfAllTiles);
  slices.buffer = buffer;
  for (HomeShare& share : slices.shares) share.slot = slot_of(share.tile);
  return slices;
}

// Gives a home a new buffer of this name, and a slot with memory of its own for each share.
void add_slots(TileProgram& program, TensorHome& home, std::string name, std::int64_t element_bytes,
               bool resident = false);

// Returns the moves that bring a tensor from one home to another, with slots whose rows are
// adjacent in memory. Padding stays where it is.
std::vector<device::Move> moves_between(const TensorHome& from, const TensorHome& to,
                                        std::int64_t element_bytes);

}  // namespace tessera::runtime::internal
