#include "tessera/planner/internal/static_moves.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "tessera/planner/internal/static_counted.hpp"

namespace tessera::planner::internal {
namespace {

// The trials that are left.
std::int64_t trials_for(const StaticCase& c, const StaticPlan& plan) {
  constexpr std::int64_t kLooks = std::int64_t{1} << 20, kLooksOfTile = 192, kMost = 1000;
  const std::int64_t looks =
      3 * c.counts.blocks + kLooksOfTile * std::ssize(plan.layouts.front().tiles);
  return std::min(kMost, kLooks / looks);
}

class BlockMover {
 public:
  BlockMover(const StaticCase& c, const BlockPattern& pattern, const StaticLimits& limits,
             StaticPlan& plan)
      : c_(c), pattern_(pattern), limits_(limits), plan_(plan), trials_(trials_for(c, plan)) {
    for (std::int64_t row = 0; row < pattern.block_rows; ++row)
      for (auto i = pattern.row_begin[std::size_t(row)];
           i < pattern.row_begin[std::size_t(row) + 1]; ++i)
        row_of_.push_back(std::int32_t(row));
  }

  std::int64_t run() {
    std::int64_t moved = 0;
    while (trials_ > 0 && move_one()) ++moved;
    return moved;
  }

 private:
  const StaticLayout& layout() const { return plan_.layouts.front(); }
  bool is_small() const { return std::ssize(layout().tiles) <= 8; }

  // Returns the blocks to try: those of the slowest tile, and on few tiles all of them.
  std::vector<std::size_t> candidates() const {
    const std::size_t slowest = slowest_tile(
        c_, load_of(layout(), pattern_), {plan_.parts.front().columns(), std::ssize(plan_.parts)});
    std::vector<std::size_t> blocks;
    for (const bool of_slowest : {true, false})
      for (std::size_t i = 0; i < layout().tile_of.size(); ++i)
        if ((std::size_t(layout().tile_of[i]) == slowest) == of_slowest &&
            (of_slowest || is_small()))
          blocks.push_back(i);
    return blocks;
  }

  // Returns the tiles on which a block may be cheaper.
  std::vector<std::int32_t> targets(std::size_t block) const {
    const auto count = std::int32_t(layout().tiles.size());
    std::vector<bool> wanted(std::size_t(count) + 1, is_small());
    for (std::size_t i = 0; i < row_of_.size(); ++i)
      if (row_of_[i] == row_of_[block] || pattern_.col[i] == pattern_.col[block])
        wanted[std::size_t(layout().tile_of[i])] = true;
    const std::int64_t one_more = std::ssize(plan_.parts) * (count + 1);
    wanted[std::size_t(count)] = one_more <= c_.machine.tiles;
    wanted[std::size_t(layout().tile_of[block])] = false;
    std::vector<std::int32_t> result;
    for (std::int32_t tile = 0; tile <= count; ++tile)
      if (wanted[std::size_t(tile)]) result.push_back(tile);
    return result;
  }

  using Move = std::pair<std::size_t, std::int32_t>;  // a block and the tile that gets it

  std::vector<Move> moves() const {
    std::vector<Move> result;
    for (const std::size_t block : candidates())
      for (const std::int32_t tile : targets(block)) result.emplace_back(block, tile);
    return result;
  }

  // Makes the first move that helps, or on few tiles two moves that help together. Returns false if
  // there are none.
  bool move_one() {
    const std::vector<Move> all = moves();
    for (const Move& move : all)
      if (try_moves({move})) return true;
    for (std::size_t i = 0; is_small() && i < all.size(); ++i)
      for (std::size_t j = i + 1; j < all.size(); ++j)
        if (all[i].first != all[j].first && try_moves({all[i], all[j]})) return true;
    return false;
  }

  bool try_moves(std::initializer_list<Move> moves) {
    if (trials_ == 0) return false;
    --trials_;
    StaticPlan trial = plan_;
    StaticLayout& changed = trial.layouts.front();
    std::size_t tiles = changed.tiles.size();
    for (const auto& [block, tile] : moves) {
      changed.tile_of[block] = tile;
      tiles = std::max(tiles, std::size_t(tile) + 1);
    }
    if (tiles > changed.tiles.size())
      for (std::size_t p = 0; p < trial.parts.size(); ++p)
        trial.parts[p].first_tile += std::int64_t(p);
    changed.tiles.resize(tiles);
    changed.tiles = load_of(changed, pattern_).tiles;
    const CountedPasses counted = counted_parts(c_, trial, pattern_);
    trial.cost = plan_cost_of(c_, counted);
    if (trial.cost.cycles >= plan_.cost.cycles || !counted.fits_words() ||
        !limits_.hold(trial.cost))
      return false;
    plan_ = std::move(trial);
    return true;
  }

  const StaticCase& c_;
  const BlockPattern& pattern_;
  const StaticLimits& limits_;
  StaticPlan& plan_;
  std::int64_t trials_;
  std::vector<std::int32_t> row_of_;  // [blocks]
};

}  // namespace

std::int64_t move_blocks(const StaticCase& c, const BlockPattern& pattern,
                         const StaticLimits& limits, StaticPlan& plan) {
  if (plan.layouts.size() != 1 || plan.grad_a || trials_for(c, plan) == 0) return 0;
  return BlockMover(c, pattern, limits, plan).run();
}

}  // namespace tessera::planner::internal
