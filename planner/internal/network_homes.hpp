#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::planner::internal {

// The part of a dense tensor on one tile: elements `elements` of the rectangle whose first element
// is (first_row, first_col) and whose rows have `width` columns, counted row by row.
struct HomePiece {
  std::int64_t first_row = 0, first_col = 0, width = 1;
  Range elements;

  std::int64_t rows() const;
};

// The place of a dense tensor [rows][cols] in a network, as runtime::Network keeps it: a piece for
// each tile, which may be empty. Pieces may have elements beyond rows and cols, which are padding.
struct Home {
  std::int64_t rows = 0, cols = 0;
  std::vector<HomePiece> pieces;  // by tile number

  // Return the elements and the rows of the largest piece.
  std::int64_t most_elements() const;
  std::int64_t most_rows() const;
};

// The homes of the tensors of a layout of a layer: its operands S and dQ before a pass, and its
// results Q and dS after it. `problem` is that of the layout.
class Homes {
 public:
  Homes(const Problem& problem, const Plan& plan);

  Home operand_s() const { return operand(/*by_rows_of_r=*/false); }
  Home operand_dq() const { return operand(/*by_rows_of_r=*/true); }
  Home result_q() const { return result(/*by_rows_of_r=*/true); }
  Home result_ds() const { return result(/*by_rows_of_r=*/false); }

 private:
  Home operand(bool by_rows_of_r) const;
  Home result(bool by_rows_of_r) const;
  template <class PieceOf>
  Home home(bool by_rows_of_r, PieceOf&& piece_of) const;

  Dims size_, parts_, padded_;
  BlockShape block_;
};

// Returns the home of a tensor whose columns are cut equally over the tiles of the machine.
Home column_home(std::int64_t rows, std::int64_t cols, std::int64_t tiles);

// Returns the home of a tensor whose elements are spread over the tiles in equal runs.
Home spread_home(std::int64_t rows, std::int64_t cols, std::int64_t tiles);

// Returns the cycles of bringing a tensor from one home to another: clearing pieces with padding,
// and one exchange in which every tile sends and receives what it does not keep.
Cycles hand_over_cycles(const Home& from, const Home& to, std::int64_t element_bytes,
                        const device::Machine& machine);

}  // namespace tessera::planner::internal
