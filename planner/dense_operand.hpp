#pragma once

#include <cstdint>
#include <utility>

#include "tessera/base/tile_map.hpp"
#include "tessera/planner/dense_plan.hpp"

namespace tessera::planner {

// A dimension of a dense product: of its sizes and of its numbers of parts.
using ProductDim = std::int64_t ProductShape::*;

// Returns the side of a cell that counts the parts of a dimension.
constexpr std::int64_t Cell::* axis_of(ProductDim dim) {
  if (dim == &ProductShape::rows) return &Cell::x;
  return dim == &ProductShape::inner ? &Cell::y : &Cell::z;
}

// An operand of a dense product as the caller's array holds it and as tiles read it. The estimate
// and the pass that runs both cut operands by it.
struct DenseOperand {
  // The dimensions of the caller's array: its lines, and the elements of a line.
  ProductDim lines = &ProductShape::rows, across = &ProductShape::inner;

  // The dimension that the operand does not have. Tiles that differ only in their part of this
  // dimension need the same slice.
  ProductDim absent = &ProductShape::columns;

  // True: the caller's array is the transposed operand, so a tile transposes its slice.
  bool transposed = false;

  // True: a tile writes its slice again, in the order of the kernel. The units hold the weights
  // in the order in which they are stored; the field and a transposed slice are reordered.
  bool reordered = false;

  friend bool operator==(const DenseOperand&, const DenseOperand&) = default;
};

// Returns one operand of the product if the units hold the operand `weights`.
inline DenseOperand dense_operand(const PassProduct& product, Side weights, Side side) {
  const bool is_left = side == Side::Left;
  const bool transposed = is_left ? product.left_transposed : product.right_transposed;
  DenseOperand operand{.lines = is_left ? &ProductShape::rows : &ProductShape::inner,
                       .across = is_left ? &ProductShape::inner : &ProductShape::columns,
                       .absent = is_left ? &ProductShape::columns : &ProductShape::rows,
                       .transposed = transposed,
                       .reordered = transposed || weights != side};
  if (transposed) std::swap(operand.lines, operand.across);
  return operand;
}

// Returns an operand as the tiles of a network hold it. The left operand of GradW is dQ, whose
// lines are rows of R in every pass.
inline DenseOperand network_operand(const PassProduct& product, Side weights, Side side) {
  DenseOperand operand = dense_operand(product, weights, side);
  if (product.pass == Pass::GradW && side == Side::Left) {
    std::swap(operand.lines, operand.across);
    operand.transposed = false;
  }
  return operand;
}

// Returns true if a round brings a new slice of the operand to the tiles. The rounds multiply all
// ranges of columns for one range of rows before the next range of rows. The left operand is
// therefore fetched once for each range of rows, and the right one is fetched once if there is a
// single range of columns, else in every round.
inline bool is_fetched(Side side, const ProductShape& rounds, std::int64_t row_round,
                       std::int64_t column_round) {
  if (side == Side::Left) return column_round == 0;
  return row_round == 0 || rounds.columns > 1;
}

}  // namespace tessera::planner
