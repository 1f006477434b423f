#include "tessera/partitioner/internal/moves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

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

std::vector<sparse::BlockAt> sorted(std::vector<sparse::BlockAt> places) {
  if (!std::is_sorted(places.begin(), places.end())) std::sort(places.begin(), places.end());
  return places;
}

std::vector<Event> merge_events(const sparse::PatternChange& change) {
  const auto removed = sorted(change.removed), added = sorted(change.added);
  std::vector<Event> events;
  events.reserve(removed.size() + added.size());
  for (auto r = removed.begin(), a = added.begin(); r != removed.end() || a != added.end();) {
    const bool take_added = r == removed.end() || (a != added.end() && *a < *r);
    events.push_back({take_added ? *a++ : *r++, take_added});
  }
  for (std::size_t i = 1; i < events.size(); ++i)
    if (events[i].at == events[i - 1].at) reject(events[i].at, "changes twice");
  return events;
}

// The first position at or behind `begin` that is not below `col`: steps double until one is, as
// neighbouring changes are often near.
const std::int32_t* gallop(const std::int32_t* begin, const std::int32_t* end, std::int32_t col) {
  std::ptrdiff_t step = 1;
  while (step < end - begin && begin[step] < col) {
    begin += step;
    step *= 2;
  }
  return std::lower_bound(begin, std::min(begin + step + 1, end), col);
}

// Where the place stands in the matrix, or would stand; not before `next`.
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

}  // namespace

Moves find_moves(const Pattern& matrix, std::int64_t old_blocks,
                 const sparse::PatternChange& change) {
  const std::int64_t changes = std::ssize(change.added) - std::ssize(change.removed);
  if (old_blocks + changes != std::ssize(matrix.col))
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("update: {} encoded blocks, {} more and {} fewer do not make the {} "
                    "of the new matrix",
                    old_blocks, change.added.size(), change.removed.size(), matrix.col.size()));
  Moves moves;
  const std::vector<Event> events = merge_events(change);
  if (events.empty()) return moves;
  std::int64_t next = position_of(matrix, events.front(), 0);
  moves.first = static_cast<std::int32_t>(next);
  moves.shift_behind = static_cast<std::int32_t>(changes);
  moves.arrivals.reserve(change.added.size());
  for (const Event& event : events) {
    const std::int64_t position = position_of(matrix, event, next);
    const std::size_t stayed = moves.new_position.size();
    moves.new_position.resize(stayed + static_cast<std::size_t>(position - next));
    std::iota(moves.new_position.begin() + static_cast<std::ptrdiff_t>(stayed),
              moves.new_position.end(), static_cast<std::int32_t>(next));
    next = position;
    if (event.added)
      moves.arrivals.push_back({event.at, static_cast<std::int32_t>(next++)});
    else
      moves.new_position.push_back(Moves::kGone);
  }
  return moves;
}

}  // namespace tessera::partitioner::internal
