#include "tessera/planner/homes.hpp"

#include <algorithm>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/planner/layouts.hpp"

namespace tessera::planner {
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

// The elements of the columns `row` of which both pieces have, without padding.
std::int64_t common_in_row(const Home& home, const HomePiece& a, const HomePiece& b,
                           std::int64_t row) {
  return common(columns_in(home, a, row), columns_in(home, b, row)).size();
}

}  // namespace

// A run of elements cuts its first and its last row only, so all rows between those of the common
// range have as many.
std::int64_t common_elements(const Home& from, std::size_t a, const Home& to, std::size_t b) {
  const auto [begin, end] = common(from.piece_rows[a], to.piece_rows[b]);
  if (begin == end) return 0;
  const HomePiece &of_from = from.pieces[a], &of_to = to.pieces[b];
  std::int64_t count = common_in_row(from, of_from, of_to, begin);
  if (end - begin > 1) count += common_in_row(from, of_from, of_to, end - 1);
  if (end - begin > 2) count += (end - begin - 2) * common_in_row(from, of_from, of_to, begin + 1);
  return count;
}

void Home::add(const HomePiece& piece) {
  pieces.push_back(piece);
  piece_rows.push_back(rows_of(*this, piece));
  unpadded.push_back(0);
  unpadded.back() = common_elements(*this, pieces.size() - 1, *this, pieces.size() - 1);
  const std::int64_t rows_with_padding = piece.rows();
  most_elements_ = std::max(most_elements_, piece.elements.size());
  most_rows_ = std::max(most_rows_, rows_with_padding);
  sum_of_rows_ += rows_with_padding;
}

bool Home::is_by_owned_rows(std::int64_t tiles) const {
  const std::int64_t owners = std::min(rows, tiles);
  for (std::size_t t = 0; t < pieces.size(); ++t) {
    if (piece_rows[t].size() <= 0) continue;
    if (std::int64_t(t) >= owners) return false;
    const Range own = share_of(rows, 1, owners, std::int64_t(t));
    if (piece_rows[t].begin < own.begin || piece_rows[t].end > own.end) return false;
  }
  return true;
}

std::int64_t HomePiece::rows() const {
  if (elements.size() == 0) return 0;
  return (elements.end - 1) / width - elements.begin / width + 1;
}

HomePadding padding_of(const HomePiece& piece, std::int64_t rows, std::int64_t cols) {
  const Range& run = piece.elements;
  if (run.size() == 0) return {};
  const std::int64_t width = piece.width;
  const std::int64_t tail = std::clamp((rows - piece.first_row) * width, run.begin, run.end);
  HomePadding padding{
      .tail = {tail, run.end},
      .columns = std::clamp<std::int64_t>(piece.first_col + width - cols, 0, width)};
  if (padding.columns > 0) padding.rows = ceil_div(tail, width) - run.begin / width;
  return padding;
}

Dims padded_size(const Problem& problem, const Plan& plan) {
  Dims grains = ceil_div(problem.size_in_blocks(), plan.grain);
  grains.z = round_up(grains.z, plan.partition.z);  // equal z on every tile
  Dims padded = grains * plan.grain;
  padded.g = 1;
  return padded;
}

Homes::Homes(const Problem& problem, const Plan& plan)
    : Homes(problem.size, plan.partition, padded_size(problem, plan), plan.block) {}

template <class PieceOf>
Home Homes::home(bool by_rows_of_r, TileOrder order, PieceOf&& piece_of) const {
  Home home(by_rows_of_r ? size_.x : size_.y, size_.z);
  const std::int64_t width = padded_.z / parts_.z;
  const TileMap map({1, parts_.x, parts_.y, parts_.z}, order);
  for (const TileId tile : map.all()) {
    const Cell c = map.cell(tile);
    const Range slice = by_rows_of_r ? share_of(padded_.x, block_.rows, parts_.x, c.x)
                                     : share_of(padded_.y, block_.cols, parts_.y, c.y);
    home.add(piece_of(slice, c.z * width, width, by_rows_of_r ? c.y : c.x));
  }
  return home;
}

Home Homes::operand(bool by_rows_of_r) const {
  const std::int64_t sharers = by_rows_of_r ? parts_.y : parts_.x;
  return home(
      by_rows_of_r, TileOrder::Yzx,
      [sharers](const Range& slice, std::int64_t first_col, std::int64_t width, std::int64_t part) {
        const Range own = share_of(slice.size(), 1, sharers, part);
        return HomePiece{slice.begin + own.begin, first_col, width, {0, own.size() * width}};
      });
}

Home Homes::result(bool by_rows_of_r) const {
  const std::int64_t sharers = by_rows_of_r ? parts_.y : parts_.x;
  return home(
      by_rows_of_r, TileOrder::Yzx,
      [sharers](const Range& slice, std::int64_t first_col, std::int64_t width, std::int64_t part) {
        return HomePiece{slice.begin, first_col, width,
                         share_of(slice.size() * width, 1, sharers, part)};
      });
}

Home Homes::slices(bool by_rows_of_r, TileOrder order) const {
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

TileMap dense_map(const DensePassPlan& plan, std::int64_t groups) {
  return {{groups, plan.parts.rows, plan.parts.inner, plan.parts.columns},
          plan.neighbours == Side::Right ? TileOrder::Yzx : TileOrder::Xyz};
}

Range DenseHomes::range(ProductDim dim, const Cell& c) const {
  const ProductShape at{c.x, c.y, c.z};
  return share_of(extent(plan_.product.size, dim), extent(plan_.grain, dim),
                  extent(plan_.parts, dim), extent(at, dim));
}

Home DenseHomes::operand(Side side, bool is_shared) const {
  const DenseOperand operand = operand_of(plan_, side);
  const ProductShape& size = plan_.product.size;
  Home home(extent(size, operand.lines), extent(size, operand.across));
  const TileMap map = dense_map(plan_);
  for (const TileId tile : map.all()) {
    const Cell c = map.cell(tile);
    const Range lines = range(operand.lines, c), across = range(operand.across, c);
    const Range own = is_shared ? share_of(lines.size(), 1, extent(plan_.parts, operand.absent),
                                           side == Side::Left ? c.z : c.x)
                                : Range{0, lines.size()};
    home.add(piece_of({lines.begin + own.begin, lines.begin + own.end}, across,
                      {0, own.size() * across.size()}));
  }
  return home;
}

Home DenseHomes::result() const {
  const ProductShape& size = plan_.product.size;
  Home home(size.rows, size.columns);
  const TileMap map = dense_map(plan_);
  for (const TileId tile : map.all()) {
    const Cell c = map.cell(tile);
    const Range rows = range(ProductDim::Rows, c), columns = range(ProductDim::Columns, c);
    home.add(
        piece_of(rows, columns, share_of(rows.size() * columns.size(), 1, plan_.parts.inner, c.y)));
  }
  return home;
}

Home home_of_s(const Problem& problem, const Plan& plan, Placement operands, std::int64_t tiles) {
  if (operands == Placement::EvenSpread) return spread_home(problem.size.y, problem.size.z, tiles);
  if (plan.dense) return DenseHomes(*plan.dense->find(Pass::Fwd)).shares(Side::Right);
  return Homes(problem, plan).operand_s();
}

Home home_of_dq(const Problem& problem, const Plan& plan, Placement operands, std::int64_t tiles) {
  if (operands == Placement::EvenSpread) return spread_home(problem.size.x, problem.size.z, tiles);
  if (plan.dense && problem.grad_a)
    return DenseHomes(*plan.dense->find(Pass::GradA)).shares(Side::Right);
  if (plan.dense) return DenseHomes(*plan.dense->find(Pass::GradW)).shares(Side::Left);
  if (plan.backward.empty()) return Homes(problem, plan).operand_dq();
  return Homes(transposed(problem), plan.backward.front()).operand_s();
}

Home column_home(std::int64_t rows, std::int64_t cols, std::int64_t tiles) {
  Home home(rows, cols);
  const std::int64_t parts = std::min(cols, tiles);
  for (std::int64_t part = 0; part < parts; ++part) {
    const Range own = share_of(cols, 1, parts, part);
    home.add({0, own.begin, std::max<std::int64_t>(own.size(), 1), {0, rows * own.size()}});
  }
  return home;
}

Home spread_home(std::int64_t rows, std::int64_t cols, std::int64_t tiles) {
  Home home(rows, cols);
  for (std::int64_t tile = 0; tile < tiles; ++tile)
    home.add({0, 0, cols, share_of(rows * cols, 1, tiles, tile)});
  return home;
}

}  // namespace tessera::planner
