#include "tessera/partitioner/internal/change_by_part.hpp"

#include <algorithm>

namespace tessera::partitioner::internal {
namespace {

using sparse::BlockAt;

std::span<const BlockAt> ascending(const std::vector<BlockAt>& places,
                                   std::vector<BlockAt>& sorted) {
  if (std::is_sorted(places.begin(), places.end())) return places;
  sorted = places;
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// Removes the blocks before `end_row` from the front of `rest` and returns them.
std::span<const BlockAt> take_before(std::int64_t end_row, std::span<const BlockAt>& rest) {
  const auto end = std::partition_point(rest.begin(), rest.end(),
                                        [end_row](const BlockAt& at) { return at.row < end_row; });
  const auto taken = rest.first(static_cast<std::size_t>(end - rest.begin()));
  rest = rest.subspan(taken.size());
  return taken;
}

// True if it is cheaper to encode a part again than to change it. The figures were measured on one
// core: an element is encoded with its value in 2 to 3 ns, in the order of the matrix; a bucket in
// which a few elements change takes five times as long as in an encode, and each change 60 ns more.
// For blocks of 16 x 16, where values are most of the work, a change costs 230 ns and a block 70
// ns.
bool cheaper_afresh(std::int64_t changes, std::int64_t blocks, const TileGrid& grid) {
  constexpr std::int64_t kFew = 64, kSmallPart = 4096;  // below these there is no time to gain
  const bool element = grid.block.is_element();
  if (element && blocks >= kSmallPart && 8 * (changes - 4) > grid.splits.y * grid.splits.z)
    return true;
  return changes > kFew && (element ? 20 : 4) * changes > blocks;
}

}  // namespace

ChangeByPart::ChangeByPart(const sparse::PatternChange& change, const Pattern& matrix,
                           const TileGrid& grid)
    : removed_(ascending(change.removed, sorted_removed_)),
      added_(ascending(change.added, sorted_added_)) {
  const std::int64_t rows = std::ssize(matrix.row_begin) - 1;
  const std::int64_t step = ceil_div(rows, grid.splits.x);
  auto removed = removed_, added = added_;
  std::int64_t shift = 0;
  for (std::int64_t x = 0; x < grid.splits.x; ++x) {
    PartChange part{x * step, std::min(rows, (x + 1) * step), {}, {}, shift, false};
    const bool last = x + 1 == grid.splits.x;  // also takes places outside the matrix
    part.removed = last ? removed : take_before(part.end_row, removed);
    part.added = last ? added : take_before(part.end_row, added);
    part.cut_again = cheaper_afresh(
        part.count(), matrix.row_begin[part.end_row] - matrix.row_begin[part.first_row], grid);
    shift += std::ssize(part.added) - std::ssize(part.removed);
    parts_.push_back(part);
  }
}

std::vector<std::int64_t> ChangeByPart::cut_again() const {
  std::vector<std::int64_t> list;
  for (std::size_t x = 0; x < parts_.size(); ++x)
    if (parts_[x].cut_again) list.push_back(static_cast<std::int64_t>(x));
  return list;
}

void ChangeByPart::cut_none_again() {
  for (PartChange& part : parts_) part.cut_again = false;
}

}  // namespace tessera::partitioner::internal
