#include "tessera/partitioner/internal/balance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/partitioner/internal/even_load.hpp"
#include "tessera/partitioner/internal/figures.hpp"
#include "tessera/partitioner/internal/fill.hpp"
#include "tessera/partitioner/internal/spill_near.hpp"
#include "tessera/partitioner/internal/spill_steps.hpp"

namespace tessera::partitioner::internal {
namespace {

std::int64_t count_blocks(const std::vector<Leftover>& left) {
  std::int64_t blocks = 0;
  for (const Leftover& l : left)
    for (const Run& run : l.runs) blocks += run.count;
  return blocks;
}

// The pattern fits if it fits in either order. Each order alone never fails with larger capacities
// if it succeeded with smaller ones, so neither do both together. Leaves the better of the two
// outcomes in `holdings`.
std::vector<Leftover> fill_either_way(Holdings& holdings) {
  auto left = fill(holdings, Stay::LongRows);
  if (left.empty()) return left;
  Holdings second = holdings;
  second.set_capacity(holdings.grid());
  auto second_left = fill(second, Stay::ShortRows);
  if (count_blocks(second_left) >= count_blocks(left)) return left;
  holdings = std::move(second);
  return second_left;
}

bool any_overfull(const Holdings& holdings) {
  for (std::int64_t b = 0; b < holdings.grid().buckets(); ++b)
    if (holdings.overfull(b)) return true;
  return false;
}

bool fits_when_grown(Holdings& holdings, const TileGrid& grid, std::int64_t percent, bool forced) {
  holdings.set_capacity(with_capacity(grid, static_cast<double>(percent) / 100));
  if (forced) return spill_near(holdings, true).empty();
  return !any_overfull(holdings) || fill_either_way(holdings).empty();
}

// The smallest factor that fits, in hundredths.
std::int64_t least_percent(Holdings& holdings, bool forced) {
  const TileGrid grid = holdings.grid();
  // No int32 pattern needs more than 2^31 times a capacity of one.
  constexpr std::int64_t kBeyondAll = std::int64_t{100} << 32;
  std::int64_t too_small = 100, enough = 200;
  while (!fits_when_grown(holdings, grid, enough, forced)) {
    TESSERA_ASSERT(enough < kBeyondAll);
    too_small = std::exchange(enough, 2 * enough);
  }
  while (enough - too_small > 1) {
    const std::int64_t middle = (too_small + enough) / 2;
    (fits_when_grown(holdings, grid, middle, forced) ? enough : too_small) = middle;
  }
  return enough;
}

// Sets what the piece of the first bucket would need as a whole.
void add_tile(Misfit& misfit, Holdings& holdings, std::int64_t bucket) {
  const TileGrid& grid = holdings.grid();
  misfit.x = bucket / grid.splits.z / grid.splits.y;
  misfit.y = bucket / grid.splits.z % grid.splits.y;
  misfit.z = bucket % grid.splits.z;
  misfit.tile = bucket;
  const auto runs = holdings.pieces().runs_of(bucket);
  const Capacity piece = holdings.alone({runs.begin(), runs.end()});
  misfit.tile_words_needed = piece.words + codelets::kEndMarkerWords;
  misfit.tile_words = grid.meta_words;
  misfit.tile_values_needed = piece.blocks * grid.block.area();
  misfit.tile_values = grid.blocks * grid.block.area();
  if (!grid.separate_grad_a) return;
  misfit.tile_grad_a_words_needed = holdings.grad_a_words_alone(runs) + codelets::kEndMarkerWords;
  misfit.tile_grad_a_words = grid.grad_a_words;
}

std::string grad_a_part(const Misfit& misfit) {
  if (misfit.tile_grad_a_words == 0) return {};
  return fmt::format(
      "; in the separate GradA buckets that tile wants {} words of {}, and what is left over {} "
      "where {} are free",
      misfit.tile_grad_a_words_needed, misfit.tile_grad_a_words, misfit.grad_a_words_needed,
      misfit.grad_a_words_free);
}

std::string tiles_part(const Misfit& misfit, const TileGrid& grid) {
  if (misfit.least_tiles <= grid.buckets()) return {};
  return fmt::format("; with buckets of this size at least {} tiles are needed, and there are {}",
                     misfit.least_tiles, grid.buckets());
}

void describe(Misfit& misfit, const TileGrid& grid) {
  misfit.message = fmt::format(
      "the non-zeros do not fit: cell (x {}, y {}) puts {} words and {} values on tile {} (z {}), "
      "which holds {} words and {} values; of this tile and others {} blocks are left over, which "
      "need {} words and {} values where {} words and {} values are free over all tiles; {} blocks "
      "are wanted in all where there is room for {}{}{}; capacities {:.2f} times as large would do "
      "(raise metaInfoBucketOversizeProportion)",
      misfit.x, misfit.y, misfit.tile_words_needed, misfit.tile_values_needed, misfit.tile,
      misfit.z, misfit.tile_words, misfit.tile_values, misfit.left_blocks, misfit.words_needed,
      misfit.values_needed, misfit.words_free, misfit.values_free, misfit.blocks_needed,
      misfit.blocks_free, grad_a_part(misfit), tiles_part(misfit, grid), misfit.capacity_factor);
}

// Spills holdings of which some buckets are overfull.
Balanced spill(Holdings& holdings, Spilling spilling) {
  const Holdings whole = holdings;
  Balanced result{fill_either_way(holdings)};
  if (!result.left.empty()) return result;
  Figures figures = figures_of(holdings);
  Holdings near = whole;
  if (spill_near(near, false).empty())
    if (const Figures of_near = figures_of(near); of_near.steps <= figures.steps) {
      figures = of_near;
      holdings = std::move(near);
    }
  result.greedy_steps = figures.steps;
  if (spilling == Spilling::Greedy) return result;
  FewestSteps fewest = spill_in_fewest_steps(whole, figures);
  result.lower_bound_steps = fewest.lower_bound;
  if (fewest.holdings) holdings = std::move(*fewest.holdings);
  return result;
}

}  // namespace

Balanced balance(Holdings& holdings, const EncodeOptions& options) {
  if (options.force_spills) return {spill_near(holdings, true)};
  if (!any_overfull(holdings)) {
    Balanced result;
    if (options.even_load)
      result.load = result.uneven_load = visits_cycles(holdings, *options.even_load);
    return result;
  }
  const Holdings whole = holdings;
  Balanced result = spill(holdings, options.spilling);
  if (result.left.empty() && options.even_load) {
    result.uneven_load = visits_cycles(holdings, *options.even_load);
    if (auto even = even_load(whole, holdings, *options.even_load)) holdings = std::move(*even);
    result.load = visits_cycles(holdings, *options.even_load);
  }
  return result;
}

Misfit make_misfit(Holdings& holdings, const std::vector<Leftover>& left, bool forced) {
  TESSERA_ASSERT(!left.empty());
  const TileGrid grid = holdings.grid();
  const auto first = std::min_element(left.begin(), left.end(), [](const auto& a, const auto& b) {
                       return a.bucket < b.bucket;
                     })->bucket;
  Misfit misfit;
  add_tile(misfit, holdings, first);
  misfit.left_blocks = count_blocks(left);
  misfit.values_needed = misfit.left_blocks * grid.block.area();
  misfit.least_tiles = holdings.least_buckets();
  for (const Leftover& l : left) {
    misfit.words_needed += holdings.alone(l.runs).words;
    misfit.grad_a_words_needed += holdings.grad_a_words_alone(l.runs);
  }
  for (std::int64_t b = 0; b < grid.buckets(); ++b) {
    misfit.words_free += holdings.free(b).words;
    misfit.values_free += holdings.free(b).blocks * grid.block.area();
    misfit.grad_a_words_free += holdings.free(b).grad_a_words;
  }
  misfit.blocks_needed = holdings.pieces().items();
  misfit.blocks_free = grid.buckets() * grid.blocks;
  misfit.capacity_factor = static_cast<double>(least_percent(holdings, forced)) / 100;
  describe(misfit, grid);
  return misfit;
}

}  // namespace tessera::partitioner::internal
