#include "tessera/planner/homes.hpp"

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/planner/layouts.hpp"

namespace tessera::planner {

Range HomePiece::rows_in(std::int64_t all_rows) const {
  const std::int64_t first = std::min(all_rows, first_row + elements.begin / width);
  return {first, std::min(all_rows, first + rows())};
}

// A run of elements cuts its first and its last row only, so all rows between those of the common
// range have as many.
std::int64_t common_elements(const Home& from, std::size_t a, const Home& to, std::size_t b) {
  const auto [begin, end] = common(from.piece_rows[a], to.piece_rows[b]);
  if (begin == end) return 0;
  const auto in_row = [&](std::int64_t row) {
    return common(from.pieces[a].cols_in(row, from.cols), to.pieces[b].cols_in(row, to.cols))
        .size();
  };
  std::int64_t count = in_row(begin);
  if (end - begin > 1) count += in_row(end - 1);
  if (end - begin > 2) count += (end - begin - 2) * in_row(begin + 1);
  return count;
}

void Home::add(const HomePiece& piece) {
  pieces.push_back(piece);
  piece_rows.push_back(piece.rows_in(rows));
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

namespace {

// A dimension of a tensor. All of its padded size, or its range in a round of a dense pass, is cut
// into parts of whole grains for the tiles.
struct CutDim {
  std::int64_t size;
  Range cut;
  std::int64_t grain, parts;
  std::int64_t Cell::* axis;

  Range part(const Cell& c) const {
    const Range part = share_of(cut.size(), grain, parts, c.*axis);
    return {cut.begin + part.begin, cut.begin + part.end};
  }
};

// Returns the home of a tensor [lines][across]. Tiles that differ only in their part of `absent`
// need the same slice.
Home cut_home(const TileMap& map, const CutDim& lines, const CutDim& across, const CutDim& absent,
              PieceKind kind) {
  Home home(map.splits().g * lines.size, across.size);
  for (const TileId tile : map.all()) {
    const Cell c = map.cell(tile);
    const Range rows = lines.part(c);
    const std::int64_t columns = across.part(c).size();
    const auto own = [&](std::int64_t all) {
      return share_of(all, 1, absent.parts, c.*absent.axis);
    };
    HomePiece piece{c.g * lines.size + rows.begin,
                    across.part(c).begin,
                    std::max<std::int64_t>(columns, 1),
                    {0, rows.size() * columns}};
    if (kind == PieceKind::Elements) piece.elements = own(rows.size() * columns);
    if (kind == PieceKind::Rows) {
      piece.first_row += own(rows.size()).begin;
      piece.elements.end = own(rows.size()).size() * columns;
    }
    home.add(piece);
  }
  return home;
}

}  // namespace

Home Homes::home(bool by_rows_of_r, PieceKind kind, TileOrder order) const {
  const CutDim x{size_.x, {0, padded_.x}, block_.rows, parts_.x, &Cell::x};
  const CutDim y{size_.y, {0, padded_.y}, block_.cols, parts_.y, &Cell::y};
  TESSERA_ASSERT(padded_.z > 0 && padded_.z % parts_.z == 0);
  const CutDim z{size_.z, {0, padded_.z}, padded_.z / parts_.z, parts_.z, &Cell::z};
  TESSERA_ASSERT(parts_.g == 1 || (by_rows_of_r ? size_.x == padded_.x : size_.y == padded_.y));
  return cut_home({parts_, order}, by_rows_of_r ? x : y, z, by_rows_of_r ? y : x, kind);
}

TileMap dense_map(const DensePassPlan& plan, std::int64_t groups) {
  return {{groups, plan.parts.rows, plan.parts.inner, plan.parts.columns},
          plan.neighbours == Side::Right ? TileOrder::Yzx : TileOrder::Xyz};
}

namespace {

CutDim cut_of(const DensePassPlan& plan, const DenseRound& round, ProductDim dim) {
  const std::int64_t size = plan.product.size.*dim;
  return {size, share_of(size, round.whole.*dim, plan.rounds.*dim, round.at.*dim), plan.grain.*dim,
          plan.parts.*dim, axis_of(dim)};
}

}  // namespace

Range DenseHomes::range(ProductDim dim, const Cell& cell) const {
  return cut_of(plan_, round_, dim).part(cell);
}

Home DenseHomes::operand(const DenseOperand& operand, PieceKind kind) const {
  const auto cut = [this](ProductDim dim) { return cut_of(plan_, round_, dim); };
  return cut_home(dense_map(plan_, round_.groups), cut(operand.lines), cut(operand.across),
                  cut(operand.absent), kind);
}

// The result is cut as an operand with its dimensions would be.
Home DenseHomes::result() const {
  return operand({&ProductShape::rows, &ProductShape::columns, &ProductShape::inner},
                 PieceKind::Elements);
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
