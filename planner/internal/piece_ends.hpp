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
  // False if rows are so short that a piece may begin anywhere in a row, or so few that its two
  // ends may be near the end of the same row.
  bool are_known() const { return apart_ < kMostApart && 2 * (apart_ + moved()) < rows_; }

  // True if the first `number` pieces end near the end of a row, so that the piece before or the
  // piece behind gets a part of one more row.
  bool is_near_row_end(std::int64_t number) const {
    const double place = double(number) * rows_;
    return number > 0 && number < pieces_ && std::abs(place - std::round(place)) < apart_;
  }
  // Returns where the first `number` pieces end. `side`, -1 or 1, is that of the row's end which
  // they are on if it is near, and else has no meaning.
  double at(std::int64_t number, double side) const {
    const double place = double(number) * rows_;
    return is_near_row_end(number) ? std::round(place) + side * moved() : place;
  }

 private:
  static constexpr double kMostApart = 1;  // rows
  // An end that is moved farther would be near the next row's end.
  double moved() const { return std::min(apart_, 0.5); }

  std::int64_t pieces_;
  double rows_, apart_;
};

// Returns the largest sum of cycles(Stretch) of all pieces over the sides on which they can end,
// which is that of the slowest of many cells. The part of one more row goes to one worker, for
// which the others wait.
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

// Returns the mean of cycles(Stretch) over the pieces of the slowest cell. Of many pieces the first
// ones stand for all.
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
