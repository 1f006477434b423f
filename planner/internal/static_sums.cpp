#include "tessera/planner/internal/static_sums.hpp"

#include <algorithm>

#include "tessera/base/dims.hpp"

namespace tessera::planner::internal {

RowShares::RowShares(const StaticCase& c, const StaticLoad& load, std::int64_t columns)
    : load_(load), elements_(c.problem.block.rows * columns), dealt_(load.depth.size(), 0) {
  const std::int64_t deepest = load.depth.empty() ? 0 : std::ranges::max(load.depth);
  for (std::int64_t depth = 1; depth <= deepest; ++depth)
    share_.push_back(share_of(elements_, 1, depth, 0).size());
}

CountedSums RowShares::next_tile() {
  CountedSums sums;
  for (const RowOnTile& row : load_.rows_of(next_tile_++)) {
    const std::int64_t depth = load_.depth[std::size_t(row.row)];
    if (depth == 1) continue;
    std::int64_t& dealt = dealt_[std::size_t(row.row)];
    const std::int64_t share = std::min(share_[std::size_t(depth - 1)], elements_ - dealt);
    dealt += share;
    sums.add(share, elements_, depth);
  }
  return sums;
}

CountedSums gradient_sums(std::int64_t values, std::int64_t parts, std::int64_t part) {
  CountedSums sums;
  if (parts > 1) sums.add(share_of(values, 1, parts, part).size(), values, parts);
  return sums;
}

namespace {

// The places of all blocks in the lists of their tiles, for one layout.
std::vector<std::int64_t> places_of(const StaticLayout& layout) {
  std::vector<std::int64_t> next(layout.tiles.size(), 0), places;
  places.reserve(layout.tile_of.size());
  for (const std::int32_t tile : layout.tile_of) places.push_back(next[std::size_t(tile)]++);
  return places;
}

// Tells which blocks follow one another on the tiles of all layouts.
class Neighbours {
 public:
  explicit Neighbours(const std::vector<StaticLayout>& layouts) : layouts_(layouts) {
    for (const StaticLayout& layout : layouts) places_.push_back(places_of(layout));
  }

  bool follow(std::size_t before, std::size_t block) const {
    for (std::size_t l = 0; l < layouts_.size(); ++l)
      if (layouts_[l].tile_of[before] != layouts_[l].tile_of[block] ||
          places_[l][before] + 1 != places_[l][block])
        return false;
    return true;
  }

 private:
  const std::vector<StaticLayout>& layouts_;
  std::vector<std::vector<std::int64_t>> places_;
};

// Returns the blocks of a layout, tile after tile.
std::vector<std::size_t> by_tile(const StaticLayout& layout) {
  std::vector<std::size_t> blocks(layout.tile_of.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = i;
  std::ranges::stable_sort(blocks, {}, [&](std::size_t i) { return layout.tile_of[i]; });
  return blocks;
}

}  // namespace

std::vector<std::vector<CountedSums>> gradient_sums(const StaticPlan& plan,
                                                    const BlockPattern& pattern) {
  std::vector<std::vector<CountedSums>> sums;
  for (const StaticPart& part : plan.parts)
    sums.emplace_back(plan.layouts[std::size_t(part.layout)].tiles.size());
  if (plan.parts.size() < 2) return sums;
  const Neighbours neighbours(plan.layouts);
  const auto blocks = by_tile(plan.layouts[std::size_t(plan.parts.front().layout)]);
  const auto depth = std::ssize(plan.parts);
  for (std::size_t begin = 0, end = 0; begin < blocks.size(); begin = end) {
    for (end = begin + 1; end < blocks.size() && neighbours.follow(blocks[end - 1], blocks[end]);)
      ++end;
    const std::int64_t values = std::int64_t(end - begin) * pattern.block.area();
    for (std::size_t p = 0; p < plan.parts.size(); ++p) {
      const StaticLayout& layout = plan.layouts[std::size_t(plan.parts[p].layout)];
      sums[p][std::size_t(layout.tile_of[blocks[begin]])].add(
          share_of(values, 1, depth, std::int64_t(p)).size(), values, depth);
    }
  }
  return sums;
}

}  // namespace tessera::planner::internal
