#include "tessera/planner/internal/static_sums.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "tessera/base/dims.hpp"
#include "tessera/base/distinct.hpp"

namespace tessera::planner::internal {

RowShares::RowShares(const StaticCase& c, const StaticLoad& load, std::int64_t columns)
    : load_(load), elements_(c.problem.block.rows * columns), dealt_(load.depth.size(), 0) {
  const std::int64_t deepest = load.depth.empty() ? 0 : std::ranges::max(load.depth);
  for (std::int64_t depth = 1; depth <= deepest; ++depth)
    share_.push_back(share_of(elements_, 1, depth, 0).size());
  if (c.machine.receive_start.value == 0) return;
  tiles_of_row_.resize(load.depth.size());
  for (std::size_t tile = 0; tile < load.tiles.size(); ++tile)
    for (const RowOnTile& row : load.rows_of(tile))
      if (load.depth[std::size_t(row.row)] > 1)
        tiles_of_row_[std::size_t(row.row)].push_back(std::int32_t(tile));
}

CountedSums RowShares::next_tile() {
  CountedSums sums;
  senders_.clear();
  const auto own = std::int32_t(next_tile_);
  for (const RowOnTile& row : load_.rows_of(next_tile_++)) {
    const std::int64_t depth = load_.depth[std::size_t(row.row)];
    if (depth == 1) continue;
    std::int64_t& dealt = dealt_[std::size_t(row.row)];
    const std::int64_t share = std::min(share_[std::size_t(depth - 1)], elements_ - dealt);
    dealt += share;
    sums.add(share, elements_, depth);
    if (share == 0 || tiles_of_row_.empty()) continue;
    for (const std::int32_t tile : tiles_of_row_[std::size_t(row.row)])
      if (tile != own) senders_.push_back(tile);
  }
  keep_distinct(senders_);
  sums.senders = std::ssize(senders_);
  return sums;
}

CountedSums gradient_sums(std::int64_t values, std::int64_t parts, std::int64_t part) {
  CountedSums sums;
  if (parts == 1) return sums;
  const std::int64_t share = share_of(values, 1, parts, part).size();
  sums.add(share, values, parts);
  if (share > 0) sums.senders = parts - 1;
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

// The tiles of other parts that send gradients to each tile.
class SenderSets {
 public:
  explicit SenderSets(const std::vector<std::vector<CountedSums>>& sums) {
    for (const auto& part : sums) sets_.emplace_back(part.size());
  }

  // Adds the tiles of all other parts to those of a part's tile.
  void add(std::size_t part, const std::vector<std::int32_t>& tiles) {
    auto& set = sets_[part][std::size_t(tiles[part])];
    for (std::size_t other = 0; other < tiles.size(); ++other)
      if (other != part) set.emplace_back(std::int32_t(other), tiles[other]);
  }

  void count(std::vector<std::vector<CountedSums>>& sums) {
    for (std::size_t part = 0; part < sets_.size(); ++part)
      for (std::size_t tile = 0; tile < sets_[part].size(); ++tile) {
        keep_distinct(sets_[part][tile]);
        sums[part][tile].senders = std::ssize(sets_[part][tile]);
      }
  }

 private:
  using Tiles = std::vector<std::pair<std::int32_t, std::int32_t>>;  // part and tile of it
  std::vector<std::vector<Tiles>> sets_;                             // [parts][tiles]
};

// Returns the blocks of a layout, tile after tile, from their places in the lists of their tiles.
std::vector<std::size_t> by_tile(const StaticLayout& layout,
                                 const std::vector<std::int64_t>& places) {
  std::vector<std::int64_t> begin(layout.tiles.size() + 1, 0);
  for (const std::int32_t tile : layout.tile_of) ++begin[std::size_t(tile) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::size_t> blocks(places.size());
  for (std::size_t i = 0; i < blocks.size(); ++i)
    blocks[std::size_t(begin[std::size_t(layout.tile_of[i])] + places[i])] = i;
  return blocks;
}

}  // namespace

std::vector<std::vector<CountedSums>> gradient_sums(const StaticPlan& plan,
                                                    const BlockPattern& pattern,
                                                    bool with_senders) {
  std::vector<std::vector<CountedSums>> sums;
  for (const StaticPart& part : plan.parts)
    sums.emplace_back(plan.layouts[std::size_t(part.layout)].tiles.size());
  if (plan.parts.size() < 2) return sums;
  SenderSets senders(sums);
  const auto depth = std::ssize(plan.parts);
  std::vector<std::int32_t> tiles(plan.parts.size());
  for (const GradientRun& run : gradient_runs(plan).runs) {
    const std::int64_t values = run.blocks * pattern.block.area();
    for (std::size_t p = 0; p < plan.parts.size(); ++p)
      tiles[p] = plan.layouts[std::size_t(plan.parts[p].layout)].tile_of[run.first];
    for (std::size_t p = 0; p < plan.parts.size(); ++p) {
      const std::int64_t share = share_of(values, 1, depth, std::int64_t(p)).size();
      sums[p][std::size_t(tiles[p])].add(share, values, depth);
      if (with_senders && share > 0) senders.add(p, tiles);
    }
  }
  if (with_senders) senders.count(sums);
  return sums;
}

}  // namespace tessera::planner::internal

namespace tessera::planner {

GradientRuns gradient_runs(const StaticAssignment& assignment) {
  GradientRuns result;
  if (assignment.parts.empty()) return result;
  for (const StaticLayout& layout : assignment.layouts)
    result.places.push_back(internal::places_of(layout));
  const auto follows = [&](std::size_t before, std::size_t block) {
    for (std::size_t l = 0; l < assignment.layouts.size(); ++l) {
      const std::vector<std::int32_t>& tile_of = assignment.layouts[l].tile_of;
      if (tile_of[before] != tile_of[block] ||
          result.places[l][before] + 1 != result.places[l][block])
        return false;
    }
    return true;
  };
  std::optional<std::size_t> before;
  const auto first = std::size_t(assignment.parts.front().layout);
  for (const std::size_t block :
       internal::by_tile(assignment.layouts[first], result.places[first])) {
    if (!before || !follows(*before, block)) result.runs.push_back({block, 0});
    ++result.runs.back().blocks;
    before = block;
  }
  return result;
}

}  // namespace tessera::planner
