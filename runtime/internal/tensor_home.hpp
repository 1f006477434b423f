#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/codelets/activation.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/planner/homes.hpp"
#include "tessera/runtime/internal/tile_program.hpp"

namespace tessera::runtime::internal {

// The part of a dense tensor in one slot of a tile.
struct HomeShare : planner::HomePiece {
  TileId tile;
  device::SlotId slot;
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
  // Calls visit(row, columns) for the rows of a share, without padding.
  template <class Visit>
  void for_each_row(const HomeShare& share, const Visit& visit) const {
    const Range of_share = share.rows_in(rows);
    for (std::int64_t row = of_share.begin; row < of_share.end; ++row)
      visit(row, share.cols_in(row, cols));
  }

  // Calls visit(row, column, position in the slot) for its elements, without padding.
  template <class Visit>
  void for_each_element(const HomeShare& share, const Visit& visit) const {
    for_each_row(share, [&](std::int64_t row, Range columns) {
      for (std::int64_t col = columns.begin; col < columns.end; ++col)
        visit(row, col, share.position(row, col));
    });
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

// Gives a home a new buffer of this name, and a slot with memory of its own for each share.
void add_slots(TileProgram& program, TensorHome& home, std::string name, std::int64_t element_bytes,
               bool resident = false);

// Returns the moves that bring a tensor from one home to another, with slots whose rows are
// adjacent in memory. Padding stays where it is.
std::vector<device::Move> moves_between(const TensorHome& from, const TensorHome& to,
                                        std::int64_t element_bytes);

// Loads a matrix of floats, rounded to the type, to its home, whose padding becomes zeros. The
// slots must have memory of their own.
void load_matrix(device::Engine& engine, const TensorHome& home, DataType type,
                 MatrixView<const float> matrix);

// Loads an operand of the host, with rows of elements of so many bytes, to its home, whose shares
// are whole rows of the operand or of some of its columns.
void load_rows(device::Engine& engine, const TensorHome& home, const device::ByteRows& operand,
               std::int64_t element_bytes);

// Writes a result of the host, with rows of elements of so many bytes, that is at its home. The
// rows of each slot follow one another in memory.
void collect_rows(const device::Engine& engine, const TensorHome& home,
                  const device::ByteRows& result, std::int64_t element_bytes);

// Writes the matrix that is at a home.
void collect_matrix(const device::Engine& engine, const TensorHome& home, DataType type,
                    MatrixView<float> matrix);

// Returns a list as a matrix of one column.
template <class T>
MatrixView<T> column_of(std::span<T> list) {
  return {list.data(), std::ssize(list), 1, 1};
}

}  // namespace tessera::runtime::internal
