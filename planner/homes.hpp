#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/base/tile_map.hpp"
#include "tessera/planner/dense_operand.hpp"
#include "tessera/planner/plan.hpp"

// The places of dense tensors on the tiles, which prices and programs have in common.
namespace tessera::planner {

// The part of a dense tensor on one tile: elements `elements` of the rectangle whose first element
// is (first_row, first_col) and whose rows have `width` columns, counted row by row.
struct HomePiece {
  std::int64_t first_row = 0, first_col = 0, width = 1;
  Range elements;

  std::int64_t rows() const;

  // Return the rows of a tensor with so many rows that are in the piece, the columns of such a row
  // of a tensor with so many columns, and the position of an element in the piece.
  Range rows_in(std::int64_t all_rows) const;
  Range cols_in(std::int64_t row, std::int64_t all_cols) const {
    const std::int64_t before = (row - first_row) * width;
    const std::int64_t begin = std::max<std::int64_t>(elements.begin - before, 0);
    const std::int64_t end = std::min(elements.end - before, width);
    return {first_col + begin, std::min(first_col + end, all_cols)};
  }
  std::int64_t position(std::int64_t row, std::int64_t col) const {
    return (row - first_row) * width + col - first_col - elements.begin;
  }

  friend bool operator==(const HomePiece&, const HomePiece&) = default;
};

// The padding of a piece: elements `tail`, which are beyond the rows of the tensor, and the last
// `columns` columns of each of the `rows` rows before them.
struct HomePadding {
  Range tail;
  std::int64_t rows = 0, columns = 0;
};

// Returns the padding of a piece of a tensor [rows][cols]. A piece may begin in the middle of a
// row, whose padding then begins later.
HomePadding padding_of(const HomePiece& piece, std::int64_t rows, std::int64_t cols);

// The place of a dense tensor [rows][cols] in a network: a piece for each tile, which may be empty.
// Pieces may have elements beyond rows and cols, which are padding.
struct Home {
  Home() = default;
  Home(std::int64_t all_rows, std::int64_t all_cols) : rows(all_rows), cols(all_cols) {}

  std::int64_t rows = 0, cols = 0;
  std::vector<HomePiece> pieces;       // by tile number
  std::vector<std::int64_t> unpadded;  // elements of each piece without padding
  std::vector<Range> piece_rows;       // of each piece, without padding

  void add(const HomePiece& piece);

  // Return the elements and the rows of the largest piece, and the rows of all pieces together.
  std::int64_t most_elements() const { return most_elements_; }
  std::int64_t most_rows() const { return most_rows_; }
  std::int64_t sum_of_rows() const { return sum_of_rows_; }

  // Returns true if each tile has only rows that it owns where they are cut equally over the tiles
  // of the machine.
  bool is_by_owned_rows(std::int64_t tiles) const;

 private:
  std::int64_t most_elements_ = 0, most_rows_ = 0, sum_of_rows_ = 0;
};

// Returns the size of a layer of one group as a plan pads it: x and y in whole grains, z in equal
// parts of them.
Dims padded_size(const Problem& problem, const Plan& plan);

// The part that a tile has of a slice which several tiles need or add up: all of it, or an equal
// share of its rows or of its elements.
enum class PieceKind { Slice, Rows, Elements };

// The homes of the tensors of a layout of a layer: its operands S and dQ before a pass, and its
// results Q and dS after it; and the slices of the operands that the tiles need. `problem` is that
// of the layout. The groups of a layer are one below the other, in rows of the padded size.
class Homes {
 public:
  Homes(const Problem& problem, const Plan& plan);

  // Does the same for a layer of this size that is cut into so many parts of the padded size, whose
  // z must be a multiple of its parts.
  Homes(Dims size, Dims parts, Dims padded, BlockShape block)
      : size_(size), parts_(parts), padded_(padded), block_(block) {}

  Home operand_s() const { return home(/*by_rows_of_r=*/false, PieceKind::Rows); }
  Home operand_dq() const { return home(/*by_rows_of_r=*/true, PieceKind::Rows); }
  Home result_q() const { return home(/*by_rows_of_r=*/true, PieceKind::Elements); }
  Home result_ds() const { return home(/*by_rows_of_r=*/false, PieceKind::Elements); }
  // `order` is that of the cells on the tiles.
  Home slices_s(TileOrder order = TileOrder::Yzx) const {
    return home(/*by_rows_of_r=*/false, PieceKind::Slice, order);
  }
  Home slices_dq(TileOrder order = TileOrder::Yzx) const {
    return home(/*by_rows_of_r=*/true, PieceKind::Slice, order);
  }

 private:
  Home home(bool by_rows_of_r, PieceKind kind, TileOrder order = TileOrder::Yzx) const;

  Dims size_, parts_, padded_;
  BlockShape block_;
};

// Returns the cells of a dense pass: x, y and z are parts of rows, of the inner dimension and of
// columns.
TileMap dense_map(const DensePassPlan& plan, std::int64_t groups = 1);

// A round of a dense pass of so many groups: the numbers of its ranges, which are cut between
// multiples of `whole` elements.
struct DenseRound {
  ProductShape at{0, 0, 0};
  ProductShape whole;
  std::int64_t groups = 1;
};

// The homes of the tensors of a dense pass in one of its rounds: the slices of its operands that
// the tiles need, and its result after it.
class DenseHomes {
 public:
  // The plan must outlive this object. Without a round: those of its first one.
  explicit DenseHomes(const DensePassPlan& plan, const DenseRound& round = {})
      : plan_(plan), round_(round) {}

  // Returns the part of a dimension that a cell has in this round.
  Range range(ProductDim dim, const Cell& cell) const;

  // Returns the home of an operand, which is one of the plan.
  Home operand(const DenseOperand& operand, PieceKind kind) const;

  // Return the slices of an operand as networks keep it, and the equal shares of them on the tiles
  // that need them.
  Home slices(Side side) const { return operand(in_network(side), PieceKind::Slice); }
  Home shares(Side side) const { return operand(in_network(side), PieceKind::Rows); }

  Home result() const;

 private:
  DenseOperand in_network(Side side) const {
    return network_operand(plan_.product, plan_.weights, side);
  }

  const DensePassPlan& plan_;
  DenseRound round_;
};

// Return the homes of S and dQ that a layer of a network asks for: an even spread over the tiles,
// or equal shares on the tiles that need a slice, in Fwd or in the first of GradA and GradW.
Home home_of_s(const Problem& problem, const Plan& plan, Placement operands, std::int64_t tiles);
Home home_of_dq(const Problem& problem, const Plan& plan, Placement operands, std::int64_t tiles);

// Returns the home of a tensor whose columns are cut equally over the tiles of the machine.
Home column_home(std::int64_t rows, std::int64_t cols, std::int64_t tiles);

// Returns the home of a tensor whose elements are spread over the tiles in equal runs.
Home spread_home(std::int64_t rows, std::int64_t cols, std::int64_t tiles);

// Returns the number of elements, without padding, that are in the piece of tile `a` of one home
// and in the piece of tile `b` of another home of the tensor.
std::int64_t common_elements(const Home& from, std::size_t a, const Home& to, std::size_t b);

}  // namespace tessera::planner
