#include "tessera/planner/internal/network_homes.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/network_cycles.hpp"

namespace tessera::planner::internal {
namespace {

// The columns of row `row` of the tensor that are in a piece, without padding.
Range columns_in(const Home& home, const HomePiece& piece, std::int64_t row) {
  const std::int64_t before = (row - piece.first_row) * piece.width;
  const std::int64_t begin = std::max<std::int64_t>(piece.elements.begin - before, 0);
  const std::int64_t end = std::min(piece.elements.end - before, piece.width);
  return {piece.first_col + begin, std::min(piece.first_col + end, home.cols)};
}

Range rows_of(const Home& home, const HomePiece& piece) {
  if (piece.elements.size() == 0) return {};
  return {piece.first_row + piece.elements.begin / piece.width,
          std::min(home.rows, piece.first_row + (piece.elements.end - 1) / piece.width + 1)};
}

// The elements that are in both pieces of a tensor, without padding.
std::int64_t common_elements(const Home& home, const HomePiece& a, const HomePiece& b) {
  const Range in_a = rows_of(home, a), in_b = rows_of(home, b);
  std::int64_t count = 0;
  for (std::int64_t row = std::max(in_a.begin, in_b.begin); row < std::min(in_a.end, in_b.end);
       ++row) {
    const Range of_a = columns_in(home, a, row), of_b = columns_in(home, b, row);
    count +=
        std::max<std::int64_t>(0, std::min(of_a.end, of_b.end) - std::max(of_a.begin, of_b.begin));
  }
  return count;
}

// The part of a tensor that all tiles of a bus need, as one of the tiles receives it.
struct Received {
  std::int64_t alone = 0, shared = 0;  // elements at single width, and at that of the bus
};

// A tile takes what it does not hold. If all tiles of its bus need the same piece, only what none
// of them holds arrives at the width of the bus.
Received received_by(std::size_t tile, const Home& from, const Home& to, std::int64_t bus) {
  const HomePiece& wanted = to.pieces[tile];
  const auto held_by = [&](std::size_t t) {
    return t < from.pieces.size() ? common_elements(from, from.pieces[t], wanted) : 0;
  };
  const std::int64_t missing = to.unpadded[tile] - held_by(tile);
  const std::size_t first = tile / std::size_t(bus) * std::size_t(bus);
  bool all_need = bus > 1 && first + std::size_t(bus) <= to.pieces.size();
  std::int64_t near = 0;
  for (std::size_t t = first; all_need && t < first + std::size_t(bus); ++t) {
    all_need = to.pieces[t] == wanted;
    if (t != tile) near += held_by(t);
  }
  return all_need ? Received{near, missing - near} : Received{missing, 0};
}

// The padding of a piece, as runtime::internal::Fetches clears it.
Cycles cycles_to_clear(const Home& home, const HomePiece& piece, bool columns,
                       std::int64_t element_bytes, const device::Machine& machine) {
  const Range& run = piece.elements;
  if (run.size() == 0) return {};
  const std::int64_t width = piece.width;
  const std::int64_t tail = std::clamp((home.rows - piece.first_row) * width, run.begin, run.end);
  const std::int64_t padded = std::min(width, piece.first_col + width - home.cols);
  const std::int64_t rows = columns && padded > 0 ? ceil_div(tail, width) - run.begin / width : 0;
  return codelets::clear_padding_cycles((run.end - tail) * element_bytes, rows,
                                        padded * element_bytes, machine.workers);
}

}  // namespace

void Home::add(const HomePiece& piece) {
  pieces.push_back(piece);
  unpadded.push_back(common_elements(*this, piece, piece));
}

std::int64_t HomePiece::rows() const {
  if (elements.size() == 0) return 0;
  return (elements.end - 1) / width - elements.begin / width + 1;
}

std::int64_t Home::most_elements() const {
  std::int64_t most = 0;
  for (const HomePiece& piece : pieces) most = std::max(most, piece.elements.size());
  return most;
}

std::int64_t Home::most_rows() const {
  std::int64_t most = 0;
  for (const HomePiece& piece : pieces) most = std::max(most, piece.rows());
  return most;
}

Homes::Homes(const Problem& problem, const Plan& plan)
    : size_(problem.size), parts_(plan.partition), block_(plan.block) {
  Dims grains = ceil_div(problem.size_in_blocks(), plan.grain);
  grains.z = round_up(grains.z, parts_.z);
  padded_ = grains * plan.grain;
}

template <class PieceOf>
Home Homes::home(bool by_rows_of_r, Order order, PieceOf&& piece_of) const {
  Home home{by_rows_of_r ? size_.x : size_.y, size_.z, {}, {}};
  const std::int64_t width = padded_.z / parts_.z;
  for (std::int64_t tile = 0; tile < parts_.product(); ++tile) {
    std::int64_t x = tile % parts_.x, z = tile / parts_.x % parts_.z;
    std::int64_t y = tile / (parts_.x * parts_.z);
    if (order == Order::Xyz) {
      z = tile % parts_.z;
      y = tile / parts_.z % parts_.y;
      x = tile / (parts_.z * parts_.y);
    }
    const Range slice = by_rows_of_r ? share_of(padded_.x, block_.rows, parts_.x, x)
                                     : share_of(padded_.y, block_.cols, parts_.y, y);
    home.add(piece_of(slice, z * width, width, by_rows_of_r ? y : x));
  }
  return home;
}

Home Homes::operand(bool by_rows_of_r) const {
  const std::int64_t sharers = by_rows_of_r ? parts_.y : parts_.x;
  return home(
      by_rows_of_r, Order::Yzx,
      [sharers](const Range& slice, std::int64_t first_col, std::int64_t width, std::int64_t part) {
        const Range own = share_of(slice.size(), 1, sharers, part);
        return HomePiece{slice.begin + own.begin, first_col, width, {0, own.size() * width}};
      });
}

Home Homes::result(bool by_rows_of_r) const {
  const std::int64_t sharers = by_rows_of_r ? parts_.y : parts_.x;
  return home(
      by_rows_of_r, Order::Yzx,
      [sharers](const Range& slice, std::int64_t first_col, std::int64_t width, std::int64_t part) {
        return HomePiece{slice.begin, first_col, width,
                         share_of(slice.size() * width, 1, sharers, part)};
      });
}

Home Homes::slices(bool by_rows_of_r, Order order) const {
  return home(by_rows_of_r, order,
              [](const Range& slice, std::int64_t first_col, std::int64_t width, std::int64_t) {
                return HomePiece{slice.begin, first_col, width, {0, slice.size() * width}};
              });
}

namespace {

// The rectangle of rows and columns, of which one tile has the elements `own`.
HomePiece piece_of(const Range& rows, const Range& columns, const Range& own) {
  return {rows.begin, columns.begin, std::max<std::int64_t>(columns.size(), 1), own};
}

// The lines and columns of an operand as networks keep it.
DenseOperand operand_of(const DensePassPlan& plan, Side side) {
  DenseOperand operand = dense_operand(plan.product, plan.weights, side);
  if (plan.product.pass == Pass::GradW && side == Side::Left)
    std::swap(operand.lines, operand.across);
  return operand;
}

}  // namespace

// As runtime::TileMap numbers the cells of a dense pass.
DenseHomes::Cell DenseHomes::cell(std::int64_t tile) const {
  const ProductShape& parts = plan_.parts;
  if (plan_.neighbours == Side::Right)
    return {tile % parts.rows, tile / (parts.rows * parts.columns),
            tile / parts.rows % parts.columns};
  return {tile / (parts.columns * parts.inner), tile / parts.columns % parts.inner,
          tile % parts.columns};
}

Range DenseHomes::range(ProductDim dim, const Cell& c) const {
  const ProductShape at{c.rows, c.inner, c.columns};
  return share_of(extent(plan_.product.size, dim), extent(plan_.grain, dim),
                  extent(plan_.parts, dim), extent(at, dim));
}

Home DenseHomes::slices(Side side) const {
  const DenseOperand operand = operand_of(plan_, side);
  const ProductShape& size = plan_.product.size;
  Home home{extent(size, operand.lines), extent(size, operand.across), {}, {}};
  for (std::int64_t tile = 0; tile < tiles(); ++tile) {
    const Range lines = range(operand.lines, cell(tile)),
                across = range(operand.across, cell(tile));
    home.add(piece_of(lines, across, {0, lines.size() * across.size()}));
  }
  return home;
}

Home DenseHomes::shares(Side side) const {
  const DenseOperand operand = operand_of(plan_, side);
  const ProductShape& size = plan_.product.size;
  Home home{extent(size, operand.lines), extent(size, operand.across), {}, {}};
  for (std::int64_t tile = 0; tile < tiles(); ++tile) {
    const Cell c = cell(tile);
    const Range lines = range(operand.lines, c), across = range(operand.across, c);
    const Range own = share_of(lines.size(), 1, extent(plan_.parts, operand.absent),
                               side == Side::Left ? c.columns : c.rows);
    home.add(piece_of({lines.begin + own.begin, lines.begin + own.end}, across,
                      {0, own.size() * across.size()}));
  }
  return home;
}

Home DenseHomes::result() const {
  const ProductShape& size = plan_.product.size;
  Home home{size.rows, size.columns, {}, {}};
  for (std::int64_t tile = 0; tile < tiles(); ++tile) {
    const Cell c = cell(tile);
    const Range rows = range(ProductDim::Rows, c), columns = range(ProductDim::Columns, c);
    home.add(piece_of(rows, columns,
                      share_of(rows.size() * columns.size(), 1, plan_.parts.inner, c.inner)));
  }
  return home;
}

Home column_home(std::int64_t rows, std::int64_t cols, std::int64_t tiles) {
  Home home{rows, cols, {}, {}};
  const std::int64_t parts = std::min(cols, tiles);
  for (std::int64_t part = 0; part < parts; ++part) {
    const Range own = share_of(cols, 1, parts, part);
    home.add({0, own.begin, std::max<std::int64_t>(own.size(), 1), {0, rows * own.size()}});
  }
  return home;
}

Home spread_home(std::int64_t rows, std::int64_t cols, std::int64_t tiles) {
  Home home{rows, cols, {}, {}};
  for (std::int64_t tile = 0; tile < tiles; ++tile)
    home.add({0, 0, cols, share_of(rows * cols, 1, tiles, tile)});
  return home;
}

Cycles hand_over_cycles(const Home& from, const Home& to, std::int64_t element_bytes,
                        const device::Machine& machine) {
  std::int64_t moved = 0;
  const auto unpadded = [](const Home& home, std::size_t t) {
    return t < home.pieces.size() ? home.unpadded[t] : 0;
  };
  for (std::size_t t = 0; t < std::max(from.pieces.size(), to.pieces.size()); ++t) {
    const bool in_both = t < std::min(from.pieces.size(), to.pieces.size());
    const std::int64_t kept = in_both ? common_elements(from, from.pieces[t], to.pieces[t]) : 0;
    moved = std::max({moved, unpadded(from, t) - kept, unpadded(to, t) - kept});
  }
  Cycles cycles;
  if (moved > 0)
    cycles +=
        machine.sync + Cycles(ceil_div(moved * element_bytes, machine.exchange_bytes_per_cycle));
  const Cycles cleared = clear_cycles(to, /*columns=*/true, element_bytes, machine);
  return cleared > Cycles() ? cycles + machine.launch + cleared : cycles;
}

Cycles fetch_cycles(const Home& from, const Home& to, std::int64_t element_bytes,
                    const device::Machine& machine) {
  const std::int64_t width = machine.exchange_bytes_per_cycle;
  const std::int64_t bus = machine.tiles_per_exchange_bus;
  std::int64_t most = 0;
  for (std::size_t t = 0; t < to.pieces.size(); ++t) {
    const auto [alone, shared] = received_by(t, from, to, bus);
    most = std::max(most, ceil_div(alone * element_bytes, width) +
                              ceil_div(shared * element_bytes, width * bus));
  }
  // A tile sends each element once, however many tiles need it.
  const bool is_shared = std::accumulate(to.unpadded.begin(), to.unpadded.end(), std::int64_t{0}) >
                         from.rows * from.cols;
  for (std::size_t t = 0; t < from.pieces.size(); ++t) {
    const bool may_keep = !is_shared && t < to.pieces.size();
    const std::int64_t kept = may_keep ? common_elements(from, from.pieces[t], to.pieces[t]) : 0;
    most = std::max(most, ceil_div((from.unpadded[t] - kept) * element_bytes, width));
  }
  return Cycles(most);
}

Cycles clear_cycles(const Home& home, bool columns, std::int64_t element_bytes,
                    const device::Machine& machine) {
  Cycles most;
  for (const HomePiece& piece : home.pieces)
    most = std::max(most, cycles_to_clear(home, piece, columns, element_bytes, machine));
  return most;
}

}  // namespace tessera::planner::internal
