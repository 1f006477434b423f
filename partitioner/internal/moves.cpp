#include "tessera/partitioner/internal/moves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "tessera/base/error.hpp"

namespace tessera::partitioner::internal {
namespace {

struct Event {
  sparse::BlockAt at;
  bool added = false;
};

[[noreturn]] void reject(sparse::BlockAt at, const char* what) {
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("update: block row {}, block column {} {}; give the matrix with the "
                          "change applied (sparse::with_change)",
                          at.row, at.col, what));
}

void merge_events(const PartChange& part, std::vector<Event>& events) {
  events.clear();
  auto r = part.removed.begin(), a = part.added.begin();
  while (r != part.removed.end() || a != part.added.end()) {
    const bool take_added = r == part.removed.end() || (a != part.added.end() && *a < *r);
    events.push_back({take_added ? *a++ : *r++, take_added});
  }
  for (std::size_t i = 1; i < events.size(); ++i)
    if (events[i].at == events[i - 1].at) reject(events[i].at, "changes twice");
}

// Returns the first position from `begin` on whose column is not below `col`. Steps double until
// one is found, since neighbouring changes are often near each other.
const std::int32_t* gallop(const std::int32_t* begin, const std::int32_t* end, std::int32_t col) {
  std::ptrdiff_t step = 1;
  while (step < end - begin && begin[step] < col) {
    begin += step;
    step *= 2;
  }
  return std::lower_bound(begin, begin + std::min(step + 1, end - begin), col);
}

// Returns the position of the place in the matrix, or the position it would have there; not before
// `next`.
std::int64_t position_of(const Pattern& matrix, const Event& event, std::int64_t next) {
  const auto [row, col] = event.at;
  if (row < 0 || row >= std::ssize(matrix.row_begin) - 1) reject(event.at, "lies outside");
  const std::int32_t* all = matrix.col.data();
  const std::int32_t* end = all + matrix.row_begin[row + 1];
  const std::int32_t* at = gallop(all + std::max(matrix.row_begin[row], next), end, col);
  const bool stored = at != end && *at == col;
  if (event.added && !stored) reject(event.at, "is added but not in the new matrix");
  if (!event.added && stored) reject(event.at, "is removed but still in the new matrix");
  return at - all;
}

// Goes through the new matrix from change to change.
class MoveFinder {
 public:
  explicit MoveFinder(const Pattern& matrix) : matrix_(matrix) {}

  void change(const PartChange& part) {
    merge_events(part, events_);
    for (const Event& event : events_) {
      go_to(position_of(matrix_, event, std::max<std::int64_t>(next_, 0)));
      if (event.added)
        moves_.arrivals.push_back({event.at, static_cast<std::int32_t>(next_++)});
      else
        moves_.new_position.push_back(Moves::kGone);
    }
  }

  void skip(const PartChange& part) {
    go_to(matrix_.row_begin[part.first_row]);
    const std::int64_t end = matrix_.row_begin[part.end_row];
    const std::int64_t old_blocks = end - next_ + std::ssize(part.removed) - std::ssize(part.added);
    if (old_blocks < 0) reject(part.added.front(), "is added but not in the new matrix");
    moves_.new_position.resize(moves_.new_position.size() + static_cast<std::size_t>(old_blocks),
                               Moves::kGone);
    next_ = end;
  }

  Moves take() { return std::move(moves_); }

 private:
  // Records that the blocks up to `position` stayed. The first position is where moves begin.
  void go_to(std::int64_t position) {
    if (next_ < 0) {
      next_ = position;
      moves_.first = static_cast<std::int32_t>(position);
    }
    const std::size_t stayed = moves_.new_position.size();
    moves_.new_position.resize(stayed + static_cast<std::size_t>(position - next_));
    std::iota(moves_.new_position.begin() + static_cast<std::ptrdiff_t>(stayed),
              moves_.new_position.end(), static_cast<std::int32_t>(next_));
    next_ = position;
  }

  Pattern matrix_;
  Moves moves_;
  std::vector<Event> events_;
  std::int64_t next_ = -1;  // position in the new matrix
};

void check_inside(std::span<const sparse::BlockAt> places, std::int64_t rows) {
  if (places.empty()) return;
  if (places.front().row < 0) reject(places.front(), "lies outside");
  if (places.back().row >= rows) reject(places.back(), "lies outside");
}

}  // namespace

Moves find_moves(const Pattern& matrix, std::int64_t old_blocks, const ChangeByPart& change) {
  const std::int64_t changes = std::ssize(change.added()) - std::ssize(change.removed());
  if (old_blocks + changes != std::ssize(matrix.col))
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("update: {} encoded blocks, {} more and {} fewer do not make the {} "
                    "of the new matrix",
                    old_blocks, change.added().size(), change.removed().size(), matrix.col.size()));
  check_inside(change.removed(), std::ssize(matrix.row_begin) - 1);
  check_inside(change.added(), std::ssize(matrix.row_begin) - 1);
  MoveFinder finder(matrix);
  for (const PartChange& part : change.parts()) {
    if (part.count() == 0) continue;
    if (part.cut_again)
      finder.skip(part);
    else
      finder.change(part);
  }
  Moves moves = finder.take();
  moves.shift_behind = static_cast<std::int32_t>(changes);
  return moves;
}

}  // namespace tessera::partitioner::internal
