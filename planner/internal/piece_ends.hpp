#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace tessera::planner::internal {

// A piece of a cell from one place to another, in rows of the cell.
struct Stretch {
  double begin = 0, end = 0;

  double size() const { return end - begin; }
};

// The ends of the pieces of a cell: after equal shares of the non-zeros, and so up to `apart` rows
// away from equal shares of the rows.
class PieceEnds {
 public:
  PieceEnds(std::int64_t pieces, double rows_of_piece, double apart)
      : pieces_(pieces), rows_(rows_of_piece), apart_(apart) {}

  std::int64_t pieces() const { return pieces_; }
  double rows_of_piece() const { return rows_; }
  // False if rows are so short, or pieces so many, that a piece may begin anywhere in a row.
  bool are_known() const { return apart_ < 0.5 && pieces_ <= kFewPieces; }

  // True if the first `number` pieces end so near to the end of a row that a part of this row or of
  // the next one comes to the piece on one of both sides.
  bool is_near_row_end(std::int64_t number) const {
    const double place = double(number) * rows_;
    return number > 0 && number < pieces_ && std::abs(place - std::round(place)) < apart_;
  }
  // Returns where the first `number` pieces end: on one side (-1 or 1) of the row's end if that is
  // near.
  double at(std::int64_t number, double side) const {
    const double place = double(number) * rows_;
    return is_near_row_end(number) ? std::round(place) + side * apart_ : place;
  }

 private:
  // One of many cells has the ends of so few pieces on the worst sides of rows' ends.
  static constexpr std::int64_t kFewPieces = 6;

  std::int64_t pieces_;
  double rows_, apart_;
};

// Returns the largest sum of cycles(Stretch) of all pieces over the sides on which they can end,
// which is that of the slowest of many cells. A row's end that is near gives one of two pieces a
// part of one more row, and five workers wait for the one that takes it.
template <class CyclesOf>
double slowest_sum(const PieceEnds& ends, const CyclesOf& cycles) {
  constexpr std::array<double, 2> kSides = {-1, 1};
  std::array<double, 2> slowest = {0, 0};  // of the pieces before, by the side of their end
  for (std::int64_t i = 0; i < ends.pieces(); ++i) {
    const std::size_t begins = ends.is_near_row_end(i) ? 2 : 1;
    const std::size_t stops = ends.is_near_row_end(i + 1) ? 2 : 1;
    std::array<double, 2> next = {0, 0};
    for (std::size_t from = 0; from < begins; ++from)
      for (std::size_t to = 0; to < stops; ++to) {
        const Stretch at{ends.at(i, kSides[from]), ends.at(i + 1, kSides[to])};
        next[to] = std::max(next[to], slowest[from] + cycles(at));
      }
    slowest = next;
  }
  return std::max(slowest[0], slowest[1]);
}

// Returns the mean of cycles(Stretch) over the pieces of the slowest cell.
template <class CyclesOf>
double mean_of_pieces(const PieceEnds& ends, const CyclesOf& cycles) {
  if (ends.are_known()) return slowest_sum(ends, cycles) / double(ends.pieces());
  constexpr int kPhases = 4;
  double sum = 0;
  for (int i = 0; i < kPhases; ++i) {
    const double begin = (i + 0.5) / kPhases;
    sum += cycles(Stretch{begin, begin + ends.rows_of_piece()});
  }
  return sum / kPhases;
}

}  // namespace tessera::planner::internal
