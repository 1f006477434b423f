#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/codelets/activation.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/partitioner/tile_grid.hpp"
#include "tessera/runtime/internal/tile_program.hpp"
#include "tessera/runtime/pass_spec.hpp"
#include "tessera/runtime/tile_map.hpp"

namespace tessera::runtime::internal {

// The part of a dense tensor in one slot: elements `elements` of the rectangle whose first element
// is (first_row, first_col) and whose rows have `width` columns, counted row by row. A whole
// rectangle is the run of all its elements.
struct HomeShare {
  TileId tile;
  device::SlotId slot;
  std::int64_t first_row = 0, first_col = 0, width = 0;
  Range elements;

  std::int64_t row_of(std::int64_t element) const { return first_row + element / width; }
  std::int64_t col_of(std::int64_t element) const { return first_col + element % width; }
};

// The place of a dense tensor [rows][cols] in a network: the shares of it on the tiles, at most one
// a tile. Shares may have elements beyond rows and cols, which are padding.
struct TensorHome {
  std::int64_t rows = 0, cols = 0;
  BufferId buffer;
  std::vector<HomeShare> shares;

  bool is_padded() const;

  // Returns the number of columns of a share that are padding, which may be all.
  std::int64_t padded_columns(const HomeShare& share) const;
  // Returns the elements of a share as the codelets of a network take them.
  codelets::ElementRun run_of(const HomeShare& share) const {
    return {share.elements.begin, share.elements.end, share.width, padded_columns(share)};
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

// Returns the home of an operand before a pass, without slots: each tile that needs a slice holds
// an equal share of its rows. `by_rows_of_r` is true for operands whose rows are those of R (dQ)
// and false for those whose rows are its columns (S).
TensorHome operand_home(const partitioner::TileGrid& grid, bool by_rows_of_r, std::int64_t rows,
                        std::int64_t cols);

// Returns the home of the result of Fwd or GradA, without slots: the tiles that share a column of
// partial sums hold an equal run of its elements each, and tiles without any have no share.
TensorHome result_home(const PassSpec& spec, std::int64_t rows, std::int64_t cols);

// Returns the slices of an operand that the tiles need in a pass whose cells are on the tiles as
// `map` says, without slots.
TensorHome slices_home(const partitioner::TileGrid& grid, const TileMap& map, bool by_rows_of_r,
                       std::int64_t rows, std::int64_t cols);

// Returns the home of a tensor whose columns are cut equally over the tiles of the machine, without
// slots.
TensorHome column_home(std::int64_t rows, std::int64_t cols, std::int64_t tiles);

// Returns the home of a tensor whose elements are spread over all tiles in equal runs, without
// slots.
TensorHome spread_home(std::int64_t rows, std::int64_t cols, std::int64_t tiles);

// Gives a home a new buffer of this name, and a slot with memory of its own for each share.
void add_slots(TileProgram& program, TensorHome& home, std::string name, std::int64_t element_bytes,
               bool resident = false);

// Returns the moves that bring a tensor from one home to another, with slots whose rows are
// adjacent in memory. Padding stays where it is.
std::vector<device::Move> moves_between(const TensorHome& from, const TensorHome& to,
                                        std::int64_t element_bytes);

}  // namespace tessera::runtime::internal
