#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/dense_operand.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::planner::internal {

// The part of a dense tensor on one tile: elements `elements` of the rectangle whose first element
// is (first_row, first_col) and whose rows have `width` columns, counted row by row.
struct HomePiece {
  std::int64_t first_row = 0, first_col = 0, width = 1;
  Range elements;

  std::int64_t rows() const;
  friend bool operator==(const HomePiece&, const HomePiece&) = default;
};

// The place of a dense tensor [rows][cols] in a network, as runtime::Network keeps it: a piece for
// each tile, which may be empty. Pieces may have elements beyond rows and cols, which are padding.
struct Home {
  std::int64_t rows = 0, cols = 0;
  std::vector<HomePiece> pieces;       // by tile number
  std::vector<std::int64_t> unpadded;  // elements of each piece without padding

  void add(const HomePiece& piece);

  // Return the elements and the rows of the largest piece.
  std::int64_t most_elements() const;
  std::int64_t most_rows() const;
};

// The homes of the tensors of a layout of a layer: its operands S and dQ before a pass, and its
// results Q and dS after it; and the slices of the operands that the tiles need. `problem` is that
// of the layout.
class Homes {
 public:
  Homes(const Problem& problem, const Plan& plan);

  Home operand_s() const { return operand(/*by_rows_of_r=*/false); }
  Home operand_dq() const { return operand(/*by_rows_of_r=*/true); }
  Home result_q() const { return result(/*by_rows_of_r=*/true); }
  Home result_ds() const { return result(/*by_rows_of_r=*/false); }

  // The order of the cells on the tiles, as runtime::TileOrder: the axis named last runs fastest.
  enum class Order { Yzx, Xyz };
  Home slices_s(Order order = Order::Yzx) const { return slices(/*by_rows_of_r=*/false, order); }
  Home slices_dq(Order order = Order::Yzx) const { return slices(/*by_rows_of_r=*/true, order); }

 private:
  Home operand(bool by_rows_of_r) const;
  Home result(bool by_rows_of_r) const;
  Home slices(bool by_rows_of_r, Order order) const;
  template <class PieceOf>
  Home home(bool by_rows_of_r, Order order, PieceOf&& piece_of) const;

  Dims size_, parts_, padded_;
  BlockShape block_;
};

// The homes of the tensors of a dense pass: the slices of its operands that the tiles need, and its
// result after it. A pass in one round.
class DenseHomes {
 public:
  explicit DenseHomes(const DensePassPlan& plan) : plan_(plan) {}

  // The left operand of GradW is dQ as networks keep it, whose rows are those of R.
  Home slices(Side side) const;
  Home result() const;
  // The equal shares of the slices, on the tiles that need them.
  Home shares(Side side) const;

 private:
  struct Cell {
    std::int64_t rows = 0, inner = 0, columns = 0;
  };
  std::int64_t tiles() const { return plan_.parts.product(); }
  Cell cell(std::int64_t tile) const;
  Range range(ProductDim dim, const Cell& c) const;

  const DensePassPlan& plan_;
};

// Returns the home of a tensor whose columns are cut equally over the tiles of the machine.
Home column_home(std::int64_t rows, std::int64_t cols, std::int64_t tiles);

// Returns the home of a tensor whose elements are spread over the tiles in equal runs.
Home spread_home(std::int64_t rows, std::int64_t cols, std::int64_t tiles);

// Returns the cycles of bringing a tensor from one home to another: clearing pieces with padding,
// and one exchange in which every tile sends and receives what it does not keep.
Cycles hand_over_cycles(const Home& from, const Home& to, std::int64_t element_bytes,
                        const device::Machine& machine);

// Returns the cycles in which every tile fetches its piece of `to` from the tiles of `from`, as a
// part of an exchange: each run of elements is sent once to all tiles that need it, and all tiles
// of a bus that need the same piece receive it together.
Cycles fetch_cycles(const Home& from, const Home& to, std::int64_t element_bytes,
                    const device::Machine& machine);

// Returns the cycles of clearing the padding of the piece with the most, of its rows and, if
// `columns` is true, of its columns, without the launch; 0 if there is none.
Cycles clear_cycles(const Home& home, bool columns, std::int64_t element_bytes,
                    const device::Machine& machine);

}  // namespace tessera::planner::internal
