#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "tessera/planner/dense_plan.hpp"

namespace tessera::planner::internal {

// A search for the best blocks of the result, instead of the result: dense_grad_w.hpp.
struct DenseSelection {
  BlockShape block;
  std::int64_t keep = 1;  // blocks on each tile
  double free_share = 1;  // of all blocks, that the pattern does not store
};

// One dense pass on one machine: everything that its partitions have in common.
struct DenseCase {
  PassProduct product;
  std::int64_t groups = 1;
  device::Machine machine;
  codelets::DenseKernel kernel;
  std::optional<DenseSelection> selection = std::nullopt;

  // Returns the elements of each dimension that no tile cuts, and those that no round cuts.
  ProductShape grain(Side weights) const;
  ProductShape round_grain() const;

  // Returns the largest size of a round.
  ProductShape round_size(const ProductShape& rounds) const;

  std::int64_t data_bytes() const { return bytes_of(kernel.data_type); }
  std::int64_t sum_bytes() const { return bytes_of(kernel.partials_type); }
};

// A partition of the product and the roles of its operands.
struct DenseCut {
  ProductShape rounds, parts;
  Side weights = Side::Right, neighbours = Side::Right;
};

// Cycles and temporary bytes of one term, of all rounds.
struct DenseStep {
  Term term = Term::Multiply;
  std::int64_t cycles = 0, temp = 0;
};

// The cost of one cut. Bytes are those of the fullest tile.
struct DenseEstimate {
  std::array<DenseStep, 6> steps;
  std::int64_t cycles = 0, temp = 0;
  std::int64_t resident = 0;  // even shares of the operands, and finished results
};

// Returns the elements of each dimension that are never cut: the depth of a unit of weights, and
// the columns that the units hold at a time.
ProductShape dense_grain(const codelets::DenseKernel& kernel, Side weights);

// Returns the cost of one cut. Rounds are priced as if all were as large as the first.
DenseEstimate dense_estimate(const DenseCase& c, const DenseCut& cut);

// Returns the bytes of the slices of both operands and of the sums. A tile has them at once, so no
// cut takes less temporary memory.
inline std::int64_t dense_slices(const DenseCase& c, const ProductShape& tile) {
  return (tile.rows + tile.columns) * tile.inner * c.data_bytes() +
         tile.rows * tile.columns * c.sum_bytes();
}

// Returns the bytes of both operands and, without a selection, of the results of a group. The tiles
// of a group keep them together, so one of them keeps its share at least.
inline std::int64_t dense_homes(const DenseCase& c) {
  const ProductShape& size = c.product.size;
  const std::int64_t results = c.selection ? 0 : size.rows * size.columns;
  return (size.rows + size.columns) * size.inner * c.data_bytes() +
         results * std::min(c.data_bytes(), c.sum_bytes());
}

// Return lower bounds of the cycles of all cuts with these rounds, parts and weights, whichever
// operand neighbours share, for the tile with the first share of every dimension, whose sizes are
// `tile`: by exchange and multiplication alone, and by all terms but the order of operands, the
// search for blocks and the smallest tile. More parts of the columns never raise the first bound.
// The second takes about as long as a price.
std::int64_t dense_lower_bound(const DenseCase& c, const DenseCut& cut, const ProductShape& tile);
std::int64_t dense_close_bound(const DenseCase& c, const DenseCut& cut, const ProductShape& tile);

// Returns the least cycles of a multiply-add: no tile multiplies faster, whatever its slices are.
double cycles_of_multiply_add(const DenseCase& c);

// Returns a lower bound of the cycles of all cuts, without looking at any: the multiplication at
// the rate of the longest field, and the least bytes that a tile can receive. O(tiles).
std::int64_t dense_floor(const DenseCase& c);

}  // namespace tessera::planner::internal
