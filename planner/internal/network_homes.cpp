#include "tessera/planner/internal/network_homes.hpp"

#include <algorithm>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"

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

std::int64_t elements_of(const Home& home, const HomePiece& piece) {
  return common_elements(home, piece, piece);
}

}  // namespace

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

// Tiles are numbered as the runtime's programs number them: x fastest, then z, then y.
template <class PieceOf>
Home Homes::home(bool by_rows_of_r, PieceOf&& piece_of) const {
  Home home{by_rows_of_r ? size_.x : size_.y, size_.z, {}};
  const std::int64_t width = padded_.z / parts_.z;
  for (std::int64_t y = 0; y < parts_.y; ++y)
    for (std::int64_t z = 0; z < parts_.z; ++z)
      for (std::int64_t x = 0; x < parts_.x; ++x) {
        const Range slice = by_rows_of_r ? share_of(padded_.x, block_.rows, parts_.x, x)
                                         : share_of(padded_.y, block_.cols, parts_.y, y);
        home.pieces.push_back(piece_of(slice, z * width, width, by_rows_of_r ? y : x));
      }
  return home;
}

Home Homes::operand(bool by_rows_of_r) const {
  const std::int64_t sharers = by_rows_of_r ? parts_.y : parts_.x;
  return home(by_rows_of_r, [sharers](const Range& slice, std::int64_t first_col,
                                      std::int64_t width, std::int64_t part) {
    const Range own = share_of(slice.size(), 1, sharers, part);
    return HomePiece{slice.begin + own.begin, first_col, width, {0, own.size() * width}};
  });
}

Home Homes::result(bool by_rows_of_r) const {
  const std::int64_t sharers = by_rows_of_r ? parts_.y : parts_.x;
  return home(by_rows_of_r, [sharers](const Range& slice, std::int64_t first_col,
                                      std::int64_t width, std::int64_t part) {
    return HomePiece{slice.begin, first_col, width,
                     share_of(slice.size() * width, 1, sharers, part)};
  });
}

Home column_home(std::int64_t rows, std::int64_t cols, std::int64_t tiles) {
  Home home{rows, cols, {}};
  const std::int64_t parts = std::min(cols, tiles);
  for (std::int64_t part = 0; part < parts; ++part) {
    const Range own = share_of(cols, 1, parts, part);
    home.pieces.push_back(
        {0, own.begin, std::max<std::int64_t>(own.size(), 1), {0, rows * own.size()}});
  }
  return home;
}

Home spread_home(std::int64_t rows, std::int64_t cols, std::int64_t tiles) {
  Home home{rows, cols, {}};
  for (std::int64_t tile = 0; tile < tiles; ++tile)
    home.pieces.push_back({0, 0, cols, share_of(rows * cols, 1, tiles, tile)});
  return home;
}

Cycles hand_over_cycles(const Home& from, const Home& to, std::int64_t element_bytes,
                        const device::Machine& machine) {
  std::int64_t moved = 0, cleared = 0;
  const HomePiece nothing;
  for (std::size_t t = 0; t < std::max(from.pieces.size(), to.pieces.size()); ++t) {
    const HomePiece& before = t < from.pieces.size() ? from.pieces[t] : nothing;
    const HomePiece& after = t < to.pieces.size() ? to.pieces[t] : nothing;
    const std::int64_t kept = common_elements(from, before, after);
    const std::int64_t received = elements_of(to, after);
    moved = std::max({moved, elements_of(from, before) - kept, received - kept});
    if (received < after.elements.size()) cleared = std::max(cleared, after.elements.size());
  }
  Cycles cycles;
  if (moved > 0)
    cycles +=
        machine.sync + Cycles(ceil_div(moved * element_bytes, machine.exchange_bytes_per_cycle));
  if (cleared > 0)
    cycles += machine.launch + codelets::zero_cycles(cleared * element_bytes, machine.workers);
  return cycles;
}

}  // namespace tessera::planner::internal
